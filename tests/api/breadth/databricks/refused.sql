-- What is not run, or fails, with the status, the code and, where there is one, the connector's. breadth.rs says how this is read.

--- an insert
-- refused 400 SQL_NOT_READ_ONLY
INSERT INTO staff VALUES (8, 'Hal', 1, 1);

--- rows in place of others
-- refused 400 SQL_NOT_READ_ONLY
INSERT OVERWRITE staff VALUES (8, 'Hal', 1, 1);

--- an insert behind a table expression
-- refused 400 SQL_NOT_READ_ONLY
WITH a AS (SELECT 8 AS id, 'Hal' AS name, 1 AS boss, 1.00 AS pay) INSERT INTO staff SELECT * FROM a;

--- an insert that begins with its source
-- refused 400 SQL_NOT_READ_ONLY
FROM staff INSERT INTO staff SELECT *;

--- several inserts
-- refused 400 SQL_NOT_READ_ONLY
FROM staff INSERT INTO staff SELECT * WHERE id = 1 INSERT INTO staff SELECT * WHERE id = 2;

--- an update
-- refused 400 SQL_NOT_READ_ONLY
UPDATE staff SET pay = 0;

--- a delete
-- refused 400 SQL_NOT_READ_ONLY
DELETE FROM staff;

--- a delete behind a table expression
-- refused 400 SQL_NOT_READ_ONLY
WITH a AS (SELECT 1) DELETE FROM staff;

--- a merge
-- refused 400 SQL_NOT_READ_ONLY
MERGE INTO staff USING roads ON staff.id = roads.origin WHEN MATCHED THEN DELETE;

--- a table without its rows
-- refused 400 SQL_NOT_READ_ONLY
TRUNCATE TABLE staff;

--- a new table
-- refused 400 SQL_NOT_READ_ONLY
CREATE TABLE two AS SELECT 1 AS v;

--- a new view
-- refused 400 SQL_NOT_READ_ONLY
CREATE VIEW two AS SELECT 1 AS v;

--- a new view of the session's own
-- refused 400 SQL_NOT_READ_ONLY
CREATE TEMPORARY VIEW two AS SELECT 1 AS v;

--- a new function
-- refused 400 SQL_NOT_READ_ONLY
CREATE FUNCTION tripled(x INT) RETURNS INT RETURN x * 3;

--- a table less
-- refused 400 SQL_NOT_READ_ONLY
DROP TABLE staff;

--- another column
-- refused 400 SQL_NOT_READ_ONLY
ALTER TABLE staff ADD COLUMN two INT;

--- words about a table
-- refused 400 SQL_NOT_READ_ONLY
COMMENT ON TABLE staff IS 'x';

--- a setting
-- refused 400 SQL_NOT_READ_ONLY
SET spark.sql.ansi.enabled = false;

--- a setting less
-- refused 400 SQL_NOT_READ_ONLY
RESET;

--- another schema
-- refused 400 SQL_NOT_READ_ONLY
USE default;

--- a variable
-- refused 400 SQL_NOT_READ_ONLY
DECLARE VARIABLE v INT DEFAULT 1;

--- a variable's value
-- refused 400 SQL_NOT_READ_ONLY
SET VARIABLE v = 1;

--- a cache
-- refused 400 SQL_NOT_READ_ONLY
CACHE TABLE staff;

--- a cache less
-- refused 400 SQL_NOT_READ_ONLY
UNCACHE TABLE staff;

--- a table anew
-- refused 400 SQL_NOT_READ_ONLY
REFRESH TABLE staff;

--- statistics
-- refused 400 SQL_NOT_READ_ONLY
ANALYZE TABLE staff COMPUTE STATISTICS;

--- a plan
-- refused 400 SQL_NOT_READ_ONLY
EXPLAIN SELECT 1;

--- a list of tables
-- refused 400 SQL_NOT_READ_ONLY
SHOW TABLES;

--- a description
-- refused 400 SQL_NOT_READ_ONLY
DESCRIBE staff;

--- a description of a query
-- refused 400 SQL_NOT_READ_ONLY
DESCRIBE QUERY SELECT 1;

--- a text that is run
-- refused 400 SQL_NOT_READ_ONLY
EXECUTE IMMEDIATE 'SELECT 1';

--- a procedure
-- refused 400 SQL_NOT_READ_ONLY
CALL system.rewrite();

--- a file of code
-- refused 400 SQL_NOT_READ_ONLY
ADD JAR '/tmp/souk_breadth.jar';

--- a directory that is written
-- refused 400 SQL_NOT_READ_ONLY
INSERT OVERWRITE DIRECTORY '/tmp/souk_breadth' USING csv SELECT * FROM staff;

--- a directory of the machine's own that is written
-- refused 400 SQL_NOT_READ_ONLY
INSERT OVERWRITE LOCAL DIRECTORY '/tmp/souk_breadth' SELECT * FROM staff;

--- a script
-- refused 400 SQL_NOT_READ_ONLY
BEGIN SELECT 1; END;

--- files that are loaded
-- refused 400 SQL_NOT_READ_ONLY
LOAD DATA INPATH '/etc/hosts' INTO TABLE staff;

--- a grant
-- refused 400 SQL_NOT_READ_ONLY
GRANT SELECT ON TABLE staff TO `x`;

--- a query that begins with its source
-- refused 400 SQL_NOT_READ_ONLY
FROM staff |> WHERE pay > 1000 |> AGGREGATE sum(pay) AS pay GROUP BY boss;

--- a step that is named as what writes is
-- refused 400 SQL_NOT_READ_ONLY
SELECT id, team FROM matches |> DROP team;

--- an insert in brackets
-- refused 400 SQL_NOT_READ_ONLY
(INSERT INTO staff VALUES (8, 'Hal', 1, 1));

--- an insert behind a comment
-- refused 400 SQL_NOT_READ_ONLY
/* SELECT */ INSERT INTO staff VALUES (8, 'Hal', 1, 1);

--- Java's methods
-- refused 502 SOURCE_ERROR read_only
SELECT reflect('java.lang.System', 'getenv', 'PATH');

--- Java's methods by another name
-- refused 502 SOURCE_ERROR read_only
SELECT java_method('java.lang.System', 'exit', 1);

--- Java's methods that may fail
-- refused 502 SOURCE_ERROR read_only
SELECT try_reflect('java.lang.System', 'getenv', 'PATH');

--- a program's own word for rows
-- refused 502 SOURCE_ERROR read_only
SELECT TRANSFORM (id) USING 'cat' AS (id) FROM staff;

--- a name that is a text
-- refused 502 SOURCE_ERROR read_only
SELECT * FROM IDENTIFIER('staff');

--- a function that is a text
-- refused 502 SOURCE_ERROR read_only
SELECT IDENTIFIER('upper')('x');

--- what is no statement
-- refused 400 SQL_NOT_READ_ONLY
NONSENSE 1;

--- a statement that breaks off
-- refused 502 SOURCE_ERROR UNRESOLVED_COLUMN
SELECT id FROM;

--- two statements
-- refused 400 SQL_NOT_READ_ONLY
SELECT 1; SELECT 2;

--- a write behind a query
-- refused 400 SQL_NOT_READ_ONLY
SELECT 1; DROP TABLE staff;

--- a column that is not there
-- refused 502 SOURCE_ERROR UNRESOLVED_COLUMN
SELECT nothing FROM staff;

--- a table that is not there
-- refused 502 SOURCE_ERROR TABLE_OR_VIEW_NOT_FOUND
SELECT * FROM nothing;

--- a schema that is not there
-- refused 502 SOURCE_ERROR TABLE_OR_VIEW_NOT_FOUND
SELECT * FROM nothing.staff;

--- a name of too many parts
-- refused 502 SOURCE_ERROR REQUIRES_SINGLE_PART_NAMESPACE
SELECT * FROM nothing.breadth.staff;

--- a function that is not there
-- refused 502 SOURCE_ERROR UNRESOLVED_ROUTINE
SELECT nothing(1);

--- types that do not fit
-- refused 502 SOURCE_ERROR DATATYPE_MISMATCH
SELECT array(1) + 1;

--- a division by zero
-- refused 502 SOURCE_ERROR DIVIDE_BY_ZERO
SELECT 1 / 0;

--- a number that is too large
-- refused 502 SOURCE_ERROR ARITHMETIC_OVERFLOW
SELECT 2147483647 + 1;

--- a cast that fails
-- refused 502 SOURCE_ERROR CAST_INVALID_INPUT
SELECT CAST('x' AS INT);

--- a day that there is not
-- refused 502 SOURCE_ERROR INVALID_TYPED_LITERAL
SELECT DATE '2026-02-30';

--- a row too many
-- refused 502 SOURCE_ERROR SCALAR_SUBQUERY_TOO_MANY_ROWS
SELECT (SELECT id FROM staff);

--- an error of the seller's own
-- refused 502 SOURCE_ERROR USER_RAISED_EXCEPTION
SELECT raise_error('no');

--- an assertion
-- refused 502 SOURCE_ERROR USER_RAISED_EXCEPTION
SELECT assert_true(false);

--- a place behind a list's end
-- refused 502 SOURCE_ERROR INVALID_ARRAY_INDEX
SELECT array(1)[5];

--- a group that misses a column
-- refused 502 SOURCE_ERROR MISSING_GROUP_BY
SELECT id, count(*) FROM staff;

--- an aggregate where none may be
-- refused 502 SOURCE_ERROR INVALID_WHERE_CONDITION
SELECT id FROM staff WHERE count(*) > 1;

--- a column of two tables
-- refused 502 SOURCE_ERROR AMBIGUOUS_REFERENCE
SELECT id FROM staff JOIN matches ON staff.id = matches.id;

--- a sum that is too large
-- refused 502 SOURCE_ERROR ARITHMETIC_OVERFLOW
SELECT sum(v) FROM VALUES (9223372036854775807), (1) AS t (v);

--- an exact number that is too large
-- refused 502 SOURCE_ERROR NUMERIC_VALUE_OUT_OF_RANGE
SELECT CAST('99999999999999999999999999999999999999' AS DECIMAL(38, 0)) * 10;

--- a pattern that is none
-- refused 502 SOURCE_ERROR INVALID_PARAMETER_VALUE
SELECT 'a' RLIKE '(';

--- a map whose keys are not exact
-- refused 502 SOURCE_ERROR inexact_type
SELECT map(DATE '2026-01-01', 1);

--- a value that is no whole number
-- :n integer "x"
-- refused 400 INVALID_PARAMETER
SELECT :n + 1;

--- a value that divides by zero
-- :n integer 0
-- refused 502 SOURCE_ERROR DIVIDE_BY_ZERO
SELECT 1 / :n;

--- a value that is too large
-- :n integer 9223372036854775807
-- refused 502 SOURCE_ERROR ARITHMETIC_OVERFLOW
SELECT :n + 1;

--- a value that is no number for Spark
-- :n string "abc"
-- refused 400 INVALID_PARAMETER CAST_INVALID_INPUT
SELECT CAST(:n AS INT);

--- a value that is no day for Spark
-- :n string "2026-02-30"
-- refused 400 INVALID_PARAMETER CAST_INVALID_INPUT
SELECT CAST(:n AS DATE);

--- a value that is a table's name
-- :n string "staff"
-- refused 502 SOURCE_ERROR read_only
SELECT count(*) FROM IDENTIFIER(:n);

--- a value that is no pattern
-- :n string "("
-- refused 400 INVALID_PARAMETER INVALID_PARAMETER_VALUE
SELECT 'a' RLIKE :n;

--- a value that is a wrong place
-- :n integer 9
-- refused 400 INVALID_PARAMETER INVALID_ARRAY_INDEX
SELECT array(1, 2)[CAST(:n AS INT)];

--- a zone that there is not
-- :n string "Mars/Olympus"
-- refused 400 INVALID_PARAMETER INVALID_TIMEZONE
SELECT from_utc_timestamp(TIMESTAMP '2026-01-01 00:00:00Z', :n);

--- a value of another type than there must be
-- :n integer 1
-- refused 502 SOURCE_ERROR DATATYPE_MISMATCH
SELECT id FROM staff WHERE :n;
