-- What is not run, or fails, with the status, the code and, where there is one, the engine's own code or the connector's. breadth.rs says how this is read.

--- an insert
-- refused 400 SQL_NOT_READ_ONLY
INSERT INTO staff VALUES (8, 'Hal', 1, 1);

--- an insert that answers rows
-- refused 400 SQL_NOT_READ_ONLY
INSERT INTO staff VALUES (8, 'Hal', 1, 1) RETURNING id;

--- an update
-- refused 400 SQL_NOT_READ_ONLY
UPDATE staff SET pay = 0;

--- a delete
-- refused 400 SQL_NOT_READ_ONLY
DELETE FROM staff RETURNING id;

--- a replacement
-- refused 400 SQL_NOT_READ_ONLY
REPLACE INTO staff VALUES (1, 'Hal', 1, 1);

--- a truncation
-- refused 400 SQL_NOT_READ_ONLY
TRUNCATE TABLE staff;

--- a new table
-- refused 400 SQL_NOT_READ_ONLY
CREATE TABLE two AS SELECT 1 AS v;

--- a new table of the session's own
-- refused 400 SQL_NOT_READ_ONLY
CREATE TEMPORARY TABLE two AS SELECT 1 AS v;

--- a table less
-- refused 400 SQL_NOT_READ_ONLY
DROP TABLE staff;

--- another column
-- refused 400 SQL_NOT_READ_ONLY
ALTER TABLE staff ADD COLUMN two INT;

--- another name
-- refused 400 SQL_NOT_READ_ONLY
RENAME TABLE staff TO crew;

--- rights for everybody
-- refused 400 SQL_NOT_READ_ONLY
GRANT ALL ON staff TO PUBLIC;

--- a file that is read into a table
-- refused 400 SQL_NOT_READ_ONLY
LOAD DATA INFILE '/etc/passwd' INTO TABLE staff;

--- a procedure
-- refused 400 SQL_NOT_READ_ONLY
CALL clears();

--- a block
-- refused 400 SQL_NOT_READ_ONLY
BEGIN NOT ATOMIC DELETE FROM staff; END;

--- a setting
-- refused 400 SQL_NOT_READ_ONLY
SET SESSION tx_read_only = 0;

--- a setting for one statement that writes
-- refused 400 SQL_NOT_READ_ONLY
SET STATEMENT max_statement_time = 1 FOR DELETE FROM staff;

--- a transaction
-- refused 400 SQL_NOT_READ_ONLY
START TRANSACTION READ WRITE;

--- the end of a transaction
-- refused 400 SQL_NOT_READ_ONLY
COMMIT;

--- a plan that is carried out
-- refused 400 SQL_NOT_READ_ONLY
ANALYZE DELETE FROM staff;

--- a plan
-- refused 400 SQL_NOT_READ_ONLY
EXPLAIN SELECT 1;

--- a list of tables
-- refused 400 SQL_NOT_READ_ONLY
SHOW TABLES;

--- a prepared statement
-- refused 400 SQL_NOT_READ_ONLY
PREPARE p FROM 'DELETE FROM staff';

--- a statement in a text
-- refused 400 SQL_NOT_READ_ONLY
EXECUTE IMMEDIATE 'DELETE FROM staff';

--- a lock of tables
-- refused 400 SQL_NOT_READ_ONLY
LOCK TABLES staff WRITE;

--- a way around the tables
-- refused 400 SQL_NOT_READ_ONLY
HANDLER staff OPEN;

--- an expression alone
-- refused 400 SQL_NOT_READ_ONLY
DO RELEASE_ALL_LOCKS();

--- another database
-- refused 400 SQL_NOT_READ_ONLY
USE mysql;

--- an end of somebody's session
-- refused 400 SQL_NOT_READ_ONLY
KILL 1;

--- tables that are flushed
-- refused 400 SQL_NOT_READ_ONLY
FLUSH TABLES;

--- a delete behind a comment
-- refused 400 SQL_NOT_READ_ONLY
/* SELECT */ DELETE FROM staff;

--- a comment that is run
-- refused 400 SQL_NOT_READ_ONLY
SELECT 1 /*! , 2 */;

--- a comment that is run by newer servers
-- refused 400 SQL_NOT_READ_ONLY
SELECT 1 /*!50000 INTO OUTFILE '/tmp/souk' */;

--- a comment that MariaDB alone runs
-- refused 400 SQL_NOT_READ_ONLY
SELECT 1 /*M! FOR UPDATE */;

--- a statement in a comment that is run
-- refused 400 SQL_NOT_READ_ONLY
/*! DELETE FROM staff */;

--- two statements
-- refused 400 SQL_NOT_READ_ONLY
SELECT 1; DELETE FROM staff;

--- two statements behind a comment
-- refused 400 SQL_NOT_READ_ONLY
SELECT 1 # ;
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
SELECT 'x\';

--- a name without an end
-- refused 400 VALIDATION_ERROR
SELECT `x;

--- a comment without an end
-- refused 400 VALIDATION_ERROR
SELECT 1 /* x;

--- a comment in a comment
-- refused 400 VALIDATION_ERROR
SELECT 1 /* a /* b */;

--- another product's placeholder
-- refused 400 VALIDATION_ERROR
SELECT ?;

--- a variable of the session
-- refused 400 VALIDATION_ERROR
SELECT @x;

--- a variable that is set
-- refused 400 SQL_NOT_READ_ONLY
SELECT @x := 1;

--- a variable that a row goes into
-- refused 400 SQL_NOT_READ_ONLY
SELECT 1 INTO @x;

--- a file that rows go into
-- refused 400 SQL_NOT_READ_ONLY
SELECT id FROM staff INTO OUTFILE '/tmp/souk-rows';

--- a file that rows go into, before the table
-- refused 400 SQL_NOT_READ_ONLY
SELECT id INTO OUTFILE '/tmp/souk-rows' FIELDS TERMINATED BY ',' FROM staff;

--- a file that a value goes into
-- refused 400 SQL_NOT_READ_ONLY
SELECT 'x' INTO DUMPFILE '/tmp/souk-value';

--- rows that are locked to be changed
-- refused 400 SQL_NOT_READ_ONLY
SELECT id FROM staff WHERE id = 1 FOR UPDATE;

--- rows that are locked to be changed, if nobody else has
-- refused 400 SQL_NOT_READ_ONLY
SELECT id FROM staff WHERE id = 1 FOR UPDATE SKIP LOCKED;

--- rows that are locked to be read
-- refused 400 SQL_NOT_READ_ONLY
SELECT id FROM staff WHERE id = 1 LOCK IN SHARE MODE;

--- rows that are locked in a subquery
-- refused 400 SQL_NOT_READ_ONLY
SELECT COUNT(*) FROM (SELECT id FROM staff FOR UPDATE) AS s;

--- a delete behind a table expression
-- refused 400 SQL_NOT_READ_ONLY
WITH x AS (SELECT 1) DELETE FROM staff;

--- a parameter that nobody declared
-- refused 400 VALIDATION_ERROR
SELECT COUNT(*) FROM staff WHERE name = :name;

--- a parameter that nothing uses
-- :name string "Ann"
-- refused 400 VALIDATION_ERROR
SELECT COUNT(*) FROM staff;

--- a sequence that goes on
-- mariadb: it has sequences
-- refused 502 SOURCE_ERROR 25006
SELECT NEXTVAL(tickets);

--- a sequence that goes on, in the standard's words
-- mariadb: it has sequences
-- refused 502 SOURCE_ERROR 25006
SELECT NEXT VALUE FOR tickets;

--- a sequence that is set
-- mariadb: it has sequences
-- refused 502 SOURCE_ERROR 25006
SELECT SETVAL(tickets, 500);

--- a function that writes
-- refused 502 SOURCE_ERROR 25006
SELECT writes();

--- a statement that nobody can read
-- refused 502 SOURCE_ERROR 42000
SELECT FROM WHERE;

--- a statement of the standard that MariaDB does not know
-- mariadb: MySQL knows it
-- refused 502 SOURCE_ERROR 42000
TABLE staff;

--- a table that is not there
-- refused 502 SOURCE_ERROR 42S02
SELECT id FROM stuff;

--- a column that is not there
-- refused 502 SOURCE_ERROR 42S22
SELECT ident FROM staff;

--- a function that is not there
-- refused 502 SOURCE_ERROR 42000
SELECT no_such_function(1);

--- a database that is not there
-- refused 502 SOURCE_ERROR
SELECT id FROM nowhere.staff;

--- an aggregate where none can be
-- refused 502 SOURCE_ERROR HY000
SELECT id FROM staff WHERE COUNT(*) > 1;

--- a number of the seller's own that is too large
-- refused 502 SOURCE_ERROR 22003
SELECT 9223372036854775807 + 1;

--- a number of the seller's own below zero
-- refused 502 SOURCE_ERROR 22003
SELECT CAST(1 AS UNSIGNED) - 2;

--- a float of the seller's own that is too large
-- refused 502 SOURCE_ERROR 22003
SELECT EXP(1000);

--- a literal that is too large
-- refused 502 SOURCE_ERROR 22007
SELECT 1e400;

--- a literal that is no day
-- refused 502 SOURCE_ERROR HY000
SELECT DATE '2026-02-30';

--- a subquery of the seller's own with too many rows
-- refused 502 SOURCE_ERROR 21000
SELECT (SELECT id FROM staff);

--- a function that complains in its own words
-- refused 502 SOURCE_ERROR 45000
SELECT complains();

--- a regular expression of the seller's own that is none
-- mariadb: MySQL has another code for it
-- refused 502 SOURCE_ERROR 42000
SELECT 'a' REGEXP '(';

--- a document of the seller's own that is none
-- mariadb: MySQL has another code for it
-- refused 502 SOURCE_ERROR HY000
SELECT a FROM JSON_TABLE('{', '$[*]' COLUMNS (a INT PATH '$')) AS t;

--- no row where there should be one
-- refused 502 SOURCE_ERROR no_row
SELECT name FROM staff WHERE FALSE;

--- two rows where there should be one
-- refused 502 SOURCE_ERROR
SELECT name FROM staff WHERE id < 3;

--- two values where there should be one
-- refused 502 SOURCE_ERROR
SELECT id, name FROM staff WHERE id = 1;

--- a caller's number that makes a sum too large
-- :n integer 9223372036854775807
-- refused 400 INVALID_PARAMETER 22003
SELECT CONCAT(:n + 1);

--- a caller's number that makes a float too large
-- :n number 1e308
-- refused 400 INVALID_PARAMETER 22003
SELECT CONCAT(:n * 100);

--- a caller's text that is no regular expression
-- mariadb: MySQL has another code for it
-- :p string "("
-- refused 400 INVALID_PARAMETER 42000
SELECT CONCAT(COUNT(*)) FROM matches WHERE team REGEXP :p;

--- a caller's text that is no document
-- mariadb: MySQL has another code for it
-- :list string "[1, 2"
-- refused 400 INVALID_PARAMETER HY000
SELECT CONCAT(SUM(l.id)) FROM JSON_TABLE(:list, '$[*]' COLUMNS (id INT PATH '$')) AS l;

--- a caller's text that its column's character set has not
-- :t string "🦀"
-- refused 400 INVALID_PARAMETER HY000
SELECT CONCAT(COUNT(*)) FROM texts WHERE latin = :t;

--- a caller's words that are no search
-- :q string "+("
-- refused 400 INVALID_PARAMETER 42000
SELECT CONCAT(COUNT(*)) FROM words WHERE MATCH (body) AGAINST (:q IN BOOLEAN MODE);

--- a caller's number of parts that there cannot be
-- :n integer 0
-- refused 400 INVALID_PARAMETER HY000
SELECT CONCAT(MAX(part)) FROM (SELECT NTILE(:n) OVER (ORDER BY id) AS part FROM staff) AS s;

--- a seller's table that is not there, whatever the caller says
-- :n integer 1
-- refused 502 SOURCE_ERROR 42S02
SELECT CONCAT(COUNT(*)) FROM stuff WHERE id = :n;

--- a seller's literal that is no day, whatever the caller says
-- :n integer 1
-- refused 502 SOURCE_ERROR HY000
SELECT CONCAT(DATE '2026-02-30', :n);

--- a seller's subquery with too many rows, whatever the caller says
-- :n integer 1
-- refused 502 SOURCE_ERROR 21000
SELECT CONCAT((SELECT id FROM staff), :n);

--- a caller's text where a number belongs
-- :n integer "7"
-- refused 400 INVALID_PARAMETER
SELECT CONCAT(:n + 1);

--- a caller's number that no whole number of 64 bits is
-- :n integer 9223372036854775808
-- refused 400 INVALID_PARAMETER
SELECT CONCAT(:n);

--- a caller's day that no calendar has
-- :day date "2026-02-30"
-- refused 400 INVALID_PARAMETER
SELECT CONCAT(:day);

--- a caller's text with an end in its middle
-- :t string "a\u0000b"
-- refused 400 INVALID_PARAMETER
SELECT CONCAT(:t);
