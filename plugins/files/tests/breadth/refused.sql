Statements that are refused, each with its code. Nothing that writes, sets or opens anything is run, and nothing is answered that would be another answer.

--- a sum that outgrows its type
-- refused number_too_large
SELECT sum(big) + 9223372036854775807 FROM sales

--- a number that outgrows its type
-- refused number_too_large
SELECT big + 1 FROM sales WHERE big > 5

--- a division by zero
-- refused statement_failed
SELECT id / (id - id) FROM staff

--- a division of decimals by zero
-- refused statement_failed
SELECT amount / 0 FROM sales

--- a text that is no number
-- refused statement_failed
SELECT CAST(name AS bigint) FROM staff

--- a number that its type does not hold
-- refused statement_failed
SELECT CAST(big AS int) FROM sales

--- a day that is none
-- refused statement_failed
SELECT CAST(name AS date) FROM staff

--- a day that is moved by hours
-- refused date_with_time
SELECT day + INTERVAL '1 hour' FROM sales

--- a table that is not there
-- refused table_not_found
SELECT * FROM nowhere

--- a column that is not there
-- refused column_not_found
SELECT nothing FROM staff

--- a column of both
-- refused column_ambiguous
SELECT id FROM staff s JOIN events e ON e.staff = s.id

--- a function that is not there
-- refused function_not_found
SELECT no_such_function(id) FROM staff

--- no statement
-- refused syntax_error
SELEC 1

--- an end that is missing
-- refused syntax_error
SELECT (1

--- rows that are written
-- refused statement_refused
INSERT INTO staff VALUES (7)

--- rows that are changed
-- refused statement_refused
UPDATE staff SET salary = 0

--- rows that are deleted
-- refused statement_refused
DELETE FROM staff

--- a table that is made
-- refused statement_refused
CREATE TABLE x AS SELECT 1

--- a table that is dropped
-- refused statement_refused
DROP TABLE staff

--- a view
-- refused statement_refused
CREATE VIEW v AS SELECT 1

--- a table of a file
-- refused statement_refused
CREATE EXTERNAL TABLE x STORED AS CSV LOCATION '/etc/passwd'

--- a file that is written
-- refused statement_refused
COPY staff TO '/tmp/x.csv'

--- a setting
-- refused statement_refused
SET datafusion.execution.batch_size = 1

--- a plan
-- refused statement_refused
EXPLAIN SELECT 1

--- a description
-- refused statement_refused
DESCRIBE staff

--- a sample
-- refused not_implemented
SELECT id FROM staff TABLESAMPLE BERNOULLI (50)

--- numbers of rows
-- refused not_implemented
SELECT * FROM generate_series(1, 2) WITH ORDINALITY AS g (n, i)

--- a pattern of a column
-- refused pattern_not_written
SELECT id FROM staff WHERE name SIMILAR TO team

--- a format of another engine
-- refused format_without_percent
SELECT to_char(hired, 'YYYY-MM-DD') FROM staff

--- an hour that is read without its minutes
-- refused format_without_time
SELECT to_timestamp('2026-01-31 23', '%Y-%m-%d %H')

--- an hour of twelve that is read without its half of the day
-- refused format_without_time
SELECT to_timestamp_millis(name, '%Y-%m-%d', '%d.%m.%Y %I:%M') FROM staff

--- rows that are fetched
-- refused not_implemented
SELECT id FROM staff FETCH FIRST 1 ROWS ONLY

--- a file in place of a table
-- refused table_not_found
SELECT * FROM '/etc/passwd'

--- the tables of the engine
-- refused table_not_found
SELECT * FROM information_schema.tables

--- a distance that PostgreSQL reads as west
-- refused zone_with_sign
SELECT "at" AT TIME ZONE '+03:00' FROM events

--- an abbreviation that knows no summer
-- refused zone_unknown
SELECT "at" AT TIME ZONE 'CET' FROM events

--- a zone that does not exist
-- refused zone_unknown
SELECT "at" AT TIME ZONE 'Europe/Nowhere' FROM events WHERE id = 1000

--- a zone that does not exist in a row
-- refused zone_unknown
SELECT "at" AT TIME ZONE kind FROM events

--- a zone of days
-- refused zone_unknown
SELECT "at" AT TIME ZONE INTERVAL '1 day' FROM events

--- a text in a zone
-- refused zone_of_no_moment
SELECT kind AT TIME ZONE 'Europe/Berlin' FROM events

--- a number in a zone
-- refused zone_of_no_moment
SELECT id AT TIME ZONE 'Europe/Berlin' FROM events
