-- What is not run, or fails, with the status, the code and, where there is one, the engine's own code or the connector's. breadth.rs says how this is read.

--- an insert
-- refused 400 SQL_NOT_READ_ONLY
INSERT INTO staff VALUES (8, 'Hal', 1, 1);

--- an update
-- refused 400 SQL_NOT_READ_ONLY
UPDATE staff SET pay = 0;

--- a delete
-- refused 400 SQL_NOT_READ_ONLY
DELETE FROM staff;

--- a merge
-- refused 400 SQL_NOT_READ_ONLY
MERGE INTO staff AS s USING (SELECT 1 AS id) AS n ON s.id = n.id WHEN MATCHED THEN DELETE;

--- a truncation
-- refused 400 SQL_NOT_READ_ONLY
TRUNCATE staff;

--- a new table
-- refused 400 SQL_NOT_READ_ONLY
CREATE TABLE two AS SELECT 1 AS v;

--- a table less
-- refused 400 SQL_NOT_READ_ONLY
DROP TABLE staff CASCADE;

--- another column
-- refused 400 SQL_NOT_READ_ONLY
ALTER TABLE staff ADD COLUMN two integer;

--- rights for everybody
-- refused 400 SQL_NOT_READ_ONLY
GRANT ALL ON staff TO PUBLIC;

--- a copy out
-- refused 400 SQL_NOT_READ_ONLY
COPY staff TO STDOUT;

--- a copy in, from a program
-- refused 400 SQL_NOT_READ_ONLY
COPY staff FROM PROGRAM 'echo 9,x,1,1' (FORMAT csv);

--- a copy out of a query, in parentheses
-- refused 400 SQL_NOT_READ_ONLY
(COPY (SELECT 1) TO STDOUT);

--- a procedure
-- refused 400 SQL_NOT_READ_ONLY
CALL clears();

--- a block
-- refused 400 SQL_NOT_READ_ONLY
DO $$ BEGIN DELETE FROM staff; END $$;

--- a setting
-- refused 400 SQL_NOT_READ_ONLY
SET default_transaction_read_only = off;

--- a setting less
-- refused 400 SQL_NOT_READ_ONLY
RESET ALL;

--- a transaction
-- refused 400 SQL_NOT_READ_ONLY
BEGIN READ WRITE;

--- the end of a transaction
-- refused 400 SQL_NOT_READ_ONLY
COMMIT;

--- a plan that is carried out
-- refused 400 SQL_NOT_READ_ONLY
EXPLAIN ANALYZE DELETE FROM staff;

--- a prepared statement
-- refused 400 SQL_NOT_READ_ONLY
PREPARE p AS DELETE FROM staff;

--- a cursor
-- refused 400 SQL_NOT_READ_ONLY
DECLARE c CURSOR WITH HOLD FOR SELECT 1;

--- a lock
-- refused 400 SQL_NOT_READ_ONLY
LOCK TABLE staff;

--- a refreshed view
-- refused 400 SQL_NOT_READ_ONLY
REFRESH MATERIALIZED VIEW kept;

--- a channel
-- refused 400 SQL_NOT_READ_ONLY
LISTEN news;

--- a vacuum behind a comment
-- refused 400 SQL_NOT_READ_ONLY
/* SELECT */ VACUUM staff;

--- two statements
-- refused 400 SQL_NOT_READ_ONLY
SELECT 1; DELETE FROM staff;

--- two statements behind a comment
-- refused 400 SQL_NOT_READ_ONLY
SELECT 1 -- ;
; SELECT 2;

--- a way out of the parentheses
-- refused 400 SQL_NOT_READ_ONLY
SELECT 1) AS s; DELETE FROM staff; SELECT (1;

--- a parenthesis that closes nothing
-- refused 400 VALIDATION_ERROR
SELECT 1) UNION (SELECT 2;

--- no statement
-- refused 400 SQL_NOT_READ_ONLY
/* nothing */ ;

--- a text without an end
-- refused 400 VALIDATION_ERROR
SELECT 'x;

--- another product's placeholder
-- refused 400 VALIDATION_ERROR
SELECT $1::text;

--- a parameter that nobody declared
-- refused 400 VALIDATION_ERROR
SELECT count(*) FROM staff WHERE name = :name;

--- a parameter that nothing uses
-- :name string "Ann"
-- refused 400 VALIDATION_ERROR
SELECT count(*) FROM staff;

--- a delete in a table expression
-- refused 502 SOURCE_ERROR 25006
WITH gone AS (DELETE FROM staff RETURNING id) SELECT count(*) FROM gone;

--- an insert in a table expression
-- refused 502 SOURCE_ERROR 25006
WITH new AS (INSERT INTO staff VALUES (8, 'Hal', 1, 1) RETURNING id) SELECT id FROM new;

--- an update in a table expression that nobody reads
-- refused 502 SOURCE_ERROR 25006
WITH changed AS (UPDATE staff SET pay = 0) SELECT 1;

--- an insert behind a table expression
-- refused 502 SOURCE_ERROR 25006
WITH x AS (SELECT 1) INSERT INTO staff VALUES (8, 'Hal', 1, 1) RETURNING id;

--- a delete behind a table expression, which answers nothing
-- refused 502 SOURCE_ERROR no_result
WITH x AS (SELECT 1) DELETE FROM staff;

--- a table out of a selection
-- refused 502 SOURCE_ERROR no_result
SELECT id INTO two FROM staff;

--- a table of the session's own out of a selection
-- refused 502 SOURCE_ERROR no_result
SELECT id INTO TEMPORARY two FROM staff;

--- a sequence that goes on
-- refused 502 SOURCE_ERROR 25006
SELECT nextval('tickets');

--- a sequence that is set
-- refused 502 SOURCE_ERROR 25006
SELECT setval('tickets', 100);

--- a sequence of which nobody has asked anything yet
-- refused 502 SOURCE_ERROR 55000
SELECT currval('tickets');

--- rows that are locked to be changed
-- refused 502 SOURCE_ERROR 25006
SELECT id FROM staff WHERE id = 1 FOR UPDATE;

--- rows that are locked to be read
-- refused 502 SOURCE_ERROR 25006
SELECT id FROM staff WHERE id = 1 FOR SHARE SKIP LOCKED;

--- rows that are locked in a subquery
-- refused 502 SOURCE_ERROR 25006
SELECT count(*) FROM (SELECT id FROM staff FOR NO KEY UPDATE OF staff NOWAIT) AS s;

--- a function that writes
-- refused 502 SOURCE_ERROR 25006
SELECT writes();

--- a function that writes what it has put together
-- refused 502 SOURCE_ERROR 25006
SELECT writes_later();

--- a transaction that makes itself one that writes
-- refused 502 SOURCE_ERROR 25001
SELECT set_config('transaction_read_only', 'off', true);

--- a transaction that makes itself one that writes, and writes
-- refused 502 SOURCE_ERROR 25006
WITH x AS (SELECT set_config('transaction_read_only', 'off', false) AS v), y AS (DELETE FROM staff RETURNING id) SELECT v FROM x, y;

--- a statement that nobody can read
-- refused 502 SOURCE_ERROR 42601
SELECT FROM WHERE;

--- a table that is not there
-- refused 502 SOURCE_ERROR 42P01
SELECT id FROM stuff;

--- a column that is not there
-- refused 502 SOURCE_ERROR 42703
SELECT ident FROM staff;

--- a function that is not there
-- refused 502 SOURCE_ERROR 42883
SELECT no_such_function(1);

--- a group that a column does not belong to
-- refused 502 SOURCE_ERROR 42803
SELECT name FROM staff GROUP BY boss;

--- a division by zero of the seller's own
-- refused 502 SOURCE_ERROR 22012
SELECT 1 / (count(*) - 7) FROM staff;

--- a number of the seller's own that is too large
-- refused 502 SOURCE_ERROR 22003
SELECT 2147483647 + 1;

--- a text of the seller's own that is no number
-- refused 502 SOURCE_ERROR 22P02
SELECT sum(name::int) FROM staff;

--- a subquery of the seller's own with too many rows
-- refused 502 SOURCE_ERROR 21000
SELECT (SELECT id FROM staff);

--- a function that complains in its own words
-- refused 502 SOURCE_ERROR SK001
SELECT complains();

--- a regular expression that is none
-- refused 502 SOURCE_ERROR 2201B
SELECT 'a' ~ '(';

--- a domain that a value is not in
-- refused 502 SOURCE_ERROR 23514
SELECT (-1)::score;

--- a day without an end
-- refused 502 SOURCE_ERROR infinite_time
SELECT date 'infinity';

--- a day that no calendar here has
-- refused 502 SOURCE_ERROR distant_time
SELECT timestamp '100000-01-01 00:00:00';

--- no row where there should be one
-- refused 502 SOURCE_ERROR no_row
SELECT name FROM staff WHERE false;

--- two rows where there should be one
-- refused 502 SOURCE_ERROR
SELECT name FROM staff WHERE id < 3;

--- two values where there should be one
-- refused 502 SOURCE_ERROR
SELECT id, name FROM staff WHERE id = 1;

--- a caller's division by zero
-- :n integer 0
-- refused 400 INVALID_PARAMETER 22012
SELECT (1 / :n)::text;

--- a caller's text that is no key
-- :key string "nonsense"
-- refused 400 INVALID_PARAMETER 22P02
SELECT id::text FROM matches WHERE key = :key;

--- a caller's word that no enumeration has
-- :side string "nowhere"
-- refused 400 INVALID_PARAMETER 22P02
SELECT count(*)::text FROM matches WHERE side = :side;

--- a caller's number that is too large for its column
-- :goals integer 40000
-- refused 400 INVALID_PARAMETER
SELECT count(*)::text FROM matches WHERE goals = :goals;

--- a caller's text where a number belongs
-- :n integer "7"
-- refused 400 INVALID_PARAMETER
SELECT (:n + 1)::text;

--- a caller's words that are no search
-- :q string "red &"
-- refused 400 INVALID_PARAMETER 42601
SELECT count(*)::text FROM staff WHERE to_tsvector('simple', name) @@ to_tsquery('simple', :q);

--- a caller's path that is none
-- :path string "$.["
-- refused 400 INVALID_PARAMETER 42601
SELECT jsonb_path_query_array('{"a": 1}', CAST(:path AS jsonpath))::text;

--- a caller's name of a table that there is not
-- :name string "stuff"
-- refused 400 INVALID_PARAMETER 42P01
SELECT CAST(CAST(:name AS regclass) AS text);
