-- What is not run, or fails, with the status, the code and, where there is one, the engine's own code or the connector's. breadth.rs says how this is read.

--- an insert
-- refused 400 SQL_NOT_READ_ONLY
INSERT INTO staff VALUES (8, 'Hal', 1, 1);

--- an insert or an update
-- refused 400 SQL_NOT_READ_ONLY
INSERT INTO staff VALUES (1, 'Hal', 1, 1) ON CONFLICT (id) DO UPDATE SET pay = 0;

--- a replacement
-- refused 400 SQL_NOT_READ_ONLY
REPLACE INTO staff VALUES (1, 'Hal', 1, 1);

--- an update
-- refused 400 SQL_NOT_READ_ONLY
UPDATE staff SET pay = 0;

--- a delete
-- refused 400 SQL_NOT_READ_ONLY
DELETE FROM staff;

--- a new table
-- refused 400 SQL_NOT_READ_ONLY
CREATE TABLE two AS SELECT 1 AS v;

--- a table of the session's own
-- refused 400 SQL_NOT_READ_ONLY
CREATE TEMP TABLE two (v);

--- a table less
-- refused 400 SQL_NOT_READ_ONLY
DROP TABLE staff;

--- another column
-- refused 400 SQL_NOT_READ_ONLY
ALTER TABLE staff ADD COLUMN two;

--- a PRAGMA that writes
-- refused 400 SQL_NOT_READ_ONLY
PRAGMA query_only = 0;

--- a PRAGMA that asks
-- refused 400 SQL_NOT_READ_ONLY
PRAGMA table_info(staff);

--- another file
-- refused 400 SQL_NOT_READ_ONLY
ATTACH 'other.db' AS other;

--- a file less
-- refused 400 SQL_NOT_READ_ONLY
DETACH main;

--- a transaction
-- refused 400 SQL_NOT_READ_ONLY
BEGIN IMMEDIATE;

--- a savepoint
-- refused 400 SQL_NOT_READ_ONLY
SAVEPOINT s;

--- a vacuum
-- refused 400 SQL_NOT_READ_ONLY
VACUUM INTO 'copy.db';

--- statistics
-- refused 400 SQL_NOT_READ_ONLY
ANALYZE;

--- an index made anew
-- refused 400 SQL_NOT_READ_ONLY
REINDEX by_team;

--- a plan
-- refused 400 SQL_NOT_READ_ONLY
EXPLAIN QUERY PLAN SELECT 1;

--- two statements
-- refused 400 SQL_NOT_READ_ONLY
SELECT 1; DELETE FROM staff;

--- a table by its name alone
-- refused 502 SOURCE_ERROR SQLITE_ERROR
TABLE staff;

--- a way out of the parentheses
-- refused 400 SQL_NOT_READ_ONLY
SELECT 1) AS s; DELETE FROM staff; SELECT (1;

--- a text without an end
-- refused 400 VALIDATION_ERROR
SELECT 'x;

--- another product's placeholder
-- refused 400 VALIDATION_ERROR
SELECT ?1;

--- another product's parameter
-- refused 400 VALIDATION_ERROR
SELECT @name;

--- a parameter that nobody declared
-- refused 400 VALIDATION_ERROR
SELECT count(*) FROM staff WHERE name = :name;

--- a delete behind a table expression
-- refused 502 SOURCE_ERROR SQLITE_AUTH
WITH x AS (SELECT 1) DELETE FROM staff;

--- a delete behind a table expression that answers
-- refused 502 SOURCE_ERROR SQLITE_AUTH
WITH x AS (SELECT 1) DELETE FROM staff RETURNING name;

--- an update behind a table expression
-- refused 502 SOURCE_ERROR SQLITE_AUTH
WITH x AS (SELECT 1) UPDATE staff SET pay = 0 RETURNING name;

--- an insert behind a table expression
-- refused 502 SOURCE_ERROR SQLITE_AUTH
WITH x AS (SELECT 1) INSERT INTO staff VALUES (8, 'Hal', 1, 1) RETURNING name;

--- an insert or an update behind a table expression
-- refused 502 SOURCE_ERROR SQLITE_AUTH
WITH x AS (SELECT 1) INSERT INTO staff SELECT 1, 'Hal', 1, 1 FROM x WHERE true ON CONFLICT (id) DO UPDATE SET pay = 0 RETURNING name;

--- a replacement behind a table expression
-- refused 502 SOURCE_ERROR SQLITE_AUTH
WITH x AS (SELECT 1) REPLACE INTO staff VALUES (1, 'Hal', 1, 1) RETURNING name;

--- a row of words behind a table expression
-- refused 502 SOURCE_ERROR
WITH x AS (SELECT 1) INSERT INTO documents (documents) VALUES ('rebuild') RETURNING rowid;

--- a PRAGMA that writes, as a function
-- refused 502 SOURCE_ERROR SQLITE_ERROR
SELECT * FROM pragma_query_only(0);

--- a PRAGMA that tells of the session, as a function
-- refused 502 SOURCE_ERROR SQLITE_AUTH
SELECT * FROM pragma_journal_mode;

--- a library
-- refused 502 SOURCE_ERROR
SELECT load_extension('x');

--- a file of the machine's
-- refused 502 SOURCE_ERROR SQLITE_ERROR
SELECT readfile('/etc/passwd');

--- a file that is written
-- refused 502 SOURCE_ERROR SQLITE_ERROR
SELECT writefile('x', 'y');

--- a series, which is not compiled in
-- refused 502 SOURCE_ERROR SQLITE_ERROR
SELECT sum(value) FROM generate_series(1, 3);

--- a statement that nobody can read
-- refused 502 SOURCE_ERROR SQLITE_ERROR
SELECT FROM WHERE;

--- a table that is not there
-- refused 502 SOURCE_ERROR table_not_found
SELECT id FROM stuff;

--- a column that is not there
-- refused 502 SOURCE_ERROR column_not_found
SELECT ident FROM staff;

--- a function that is not there
-- refused 502 SOURCE_ERROR function_not_found
SELECT no_such_function(1);

--- an index that does not serve
-- refused 502 SOURCE_ERROR SQLITE_ERROR
SELECT count(*) FROM matches INDEXED BY finals WHERE team = 'ajax';

--- a sum that is too large
-- refused 502 SOURCE_ERROR SQLITE_ERROR
SELECT sum(v) FROM (SELECT 9223372036854775807 AS v UNION ALL SELECT 1);

--- a document of the seller's own that is none
-- refused 502 SOURCE_ERROR SQLITE_ERROR
SELECT json_extract('{', '$.a');

--- words of the seller's own that nobody can look for
-- refused 502 SOURCE_ERROR SQLITE_ERROR
SELECT count(*) FROM documents WHERE documents MATCH '"';

--- a limit of the seller's own that is no number
-- refused 502 SOURCE_ERROR SQLITE_MISMATCH
SELECT name FROM staff LIMIT 'many';

--- no row where there should be one
-- refused 502 SOURCE_ERROR no_row
SELECT name FROM staff WHERE 0;

--- two rows where there should be one
-- refused 502 SOURCE_ERROR
SELECT name FROM staff WHERE id < 3;

--- two values where there should be one
-- refused 502 SOURCE_ERROR
SELECT id, name FROM staff WHERE id = 1;

--- a caller's text where a number belongs
-- :n string "many"
-- refused 400 INVALID_PARAMETER SQLITE_MISMATCH
SELECT group_concat(name) FROM (SELECT name FROM staff LIMIT :n);

--- a caller's day that is none
-- :day date "2026-02-30"
-- refused 400 INVALID_PARAMETER
SELECT count(*) FROM matches WHERE day = :day;

--- a caller's words that are no search
-- :q string "\"red"
-- refused 400 INVALID_PARAMETER SQLITE_ERROR
SELECT count(*) FROM documents WHERE documents MATCH :q;

--- a caller's words that name a column of the search that there is not
-- :q string "colour:red"
-- refused 400 INVALID_PARAMETER SQLITE_ERROR
SELECT count(*) FROM documents WHERE documents MATCH :q;

--- a caller's path that is none
-- :path string "a["
-- refused 400 INVALID_PARAMETER SQLITE_ERROR
SELECT json_extract('{"a": 1}', :path);

--- a seller's column that is not there, whatever the caller says
-- :n integer 1
-- refused 502 SOURCE_ERROR SQLITE_ERROR
SELECT count(*) FROM staff WHERE size = :n;
