-- What is not run, or fails, with the status, the code and, where there is one, the connector's or ClickHouse's. breadth.rs says how this is read.

--- an insert
-- refused 400 SQL_NOT_READ_ONLY
INSERT INTO staff VALUES (8, 'Hal', 1, 1);

--- an insert of a query's rows
-- refused 400 SQL_NOT_READ_ONLY
INSERT INTO staff SELECT * FROM staff;

--- an insert into a table function
-- refused 400 SQL_NOT_READ_ONLY
INSERT INTO FUNCTION file('souk_breadth.csv', 'CSV', 'a Int8') SELECT 1;

--- an update
-- refused 400 SQL_NOT_READ_ONLY
UPDATE staff SET pay = 0 WHERE true;

--- a mutation that updates
-- refused 400 SQL_NOT_READ_ONLY
ALTER TABLE staff UPDATE pay = 0 WHERE true;

--- a mutation that deletes
-- refused 400 SQL_NOT_READ_ONLY
ALTER TABLE staff DELETE WHERE true;

--- a delete
-- refused 400 SQL_NOT_READ_ONLY
DELETE FROM staff WHERE true;

--- a table without its rows
-- refused 400 SQL_NOT_READ_ONLY
TRUNCATE TABLE staff;

--- a new table
-- refused 400 SQL_NOT_READ_ONLY
CREATE TABLE two (v Int8) ENGINE = Memory;

--- a new table of a query's rows
-- refused 400 SQL_NOT_READ_ONLY
CREATE TABLE two ENGINE = Memory AS SELECT 1 AS v;

--- a new table of the session's own
-- refused 400 SQL_NOT_READ_ONLY
CREATE TEMPORARY TABLE two (v Int8);

--- a new view
-- refused 400 SQL_NOT_READ_ONLY
CREATE VIEW two AS SELECT 1 AS v;

--- a new view that keeps its rows
-- refused 400 SQL_NOT_READ_ONLY
CREATE MATERIALIZED VIEW two ENGINE = Memory AS SELECT 1 AS v;

--- a new database
-- refused 400 SQL_NOT_READ_ONLY
CREATE DATABASE two;

--- a new dictionary
-- refused 400 SQL_NOT_READ_ONLY
CREATE DICTIONARY two (id UInt64) PRIMARY KEY id SOURCE(NULL()) LAYOUT(FLAT()) LIFETIME(0);

--- a new function
-- refused 400 SQL_NOT_READ_ONLY
CREATE FUNCTION tripled AS (x) -> x * 3;

--- a new user
-- refused 400 SQL_NOT_READ_ONLY
CREATE USER two;

--- a table less
-- refused 400 SQL_NOT_READ_ONLY
DROP TABLE staff;

--- a database less
-- refused 400 SQL_NOT_READ_ONLY
DROP DATABASE shop;

--- a table without its server
-- refused 400 SQL_NOT_READ_ONLY
DETACH TABLE staff;

--- a table that comes back
-- refused 400 SQL_NOT_READ_ONLY
ATTACH TABLE staff;

--- another column
-- refused 400 SQL_NOT_READ_ONLY
ALTER TABLE staff ADD COLUMN two Int8;

--- a part that moves
-- refused 400 SQL_NOT_READ_ONLY
ALTER TABLE staff DROP PARTITION ID 'all';

--- another name
-- refused 400 SQL_NOT_READ_ONLY
RENAME TABLE staff TO two;

--- tables that change places
-- refused 400 SQL_NOT_READ_ONLY
EXCHANGE TABLES staff AND matches;

--- parts that become one
-- refused 400 SQL_NOT_READ_ONLY
OPTIMIZE TABLE staff FINAL;

--- a right
-- refused 400 SQL_NOT_READ_ONLY
GRANT SELECT ON *.* TO souk;

--- a right less
-- refused 400 SQL_NOT_READ_ONLY
REVOKE SELECT ON *.* FROM souk;

--- a setting
-- refused 400 SQL_NOT_READ_ONLY
SET max_threads = 1;

--- the setting that holds read-only
-- refused 400 SQL_NOT_READ_ONLY
SET readonly = 0;

--- a role
-- refused 400 SQL_NOT_READ_ONLY
SET ROLE ALL;

--- a parameter of the session
-- refused 400 SQL_NOT_READ_ONLY
SET param_a = 1;

--- a command to the server
-- refused 400 SQL_NOT_READ_ONLY
SYSTEM FLUSH LOGS;

--- the end of the server
-- refused 400 SQL_NOT_READ_ONLY
SYSTEM SHUTDOWN;

--- a query that is stopped
-- refused 400 SQL_NOT_READ_ONLY
KILL QUERY WHERE true;

--- a mutation that is stopped
-- refused 400 SQL_NOT_READ_ONLY
KILL MUTATION WHERE true;

--- another database
-- refused 400 SQL_NOT_READ_ONLY
USE system;

--- a backup
-- refused 400 SQL_NOT_READ_ONLY
BACKUP TABLE staff TO Disk('default', 'souk_breadth');

--- a backup that comes back
-- refused 400 SQL_NOT_READ_ONLY
RESTORE TABLE staff FROM Disk('default', 'souk_breadth');

--- a transaction
-- refused 400 SQL_NOT_READ_ONLY
BEGIN TRANSACTION;

--- the end of a transaction
-- refused 400 SQL_NOT_READ_ONLY
ROLLBACK;

--- a copy of a disk's
-- refused 400 SQL_NOT_READ_ONLY
MOVE USER two TO disk;

--- a check of a table
-- refused 400 SQL_NOT_READ_ONLY
CHECK TABLE staff;

--- a plan
-- refused 400 SQL_NOT_READ_ONLY
EXPLAIN SELECT 1;

--- a plan of what writes
-- refused 400 SQL_NOT_READ_ONLY
EXPLAIN PIPELINE INSERT INTO staff SELECT * FROM staff;

--- tables by their names
-- refused 400 SQL_NOT_READ_ONLY
SHOW TABLES;

--- who may do what
-- refused 400 SQL_NOT_READ_ONLY
SHOW GRANTS;

--- a description
-- refused 400 SQL_NOT_READ_ONLY
DESCRIBE TABLE staff;

--- whether there is a table
-- refused 400 SQL_NOT_READ_ONLY
EXISTS TABLE staff;

--- a watch
-- refused 400 SQL_NOT_READ_ONLY
WATCH staff;

--- rows first, which the words of a query do not have
-- refused 400 SQL_NOT_READ_ONLY
FROM staff SELECT id;

--- two statements
-- refused 400 SQL_NOT_READ_ONLY
SELECT 1; DROP TABLE staff;

--- two statements behind a comment
-- refused 400 SQL_NOT_READ_ONLY
SELECT 1 -- ;
; SELECT 2;

--- two statements behind a comment of another kind
-- refused 400 SQL_NOT_READ_ONLY
SELECT 1 # ;
; SELECT 2;

--- an insert behind a table expression
-- refused 400 SQL_NOT_READ_ONLY
WITH x AS (SELECT 1) INSERT INTO staff SELECT 8, 'Hal', 1, 1 FROM x;

--- an insert that a typographic quote hides
-- refused 400 VALIDATION_ERROR
WITH ‘'’ AS a INSERT INTO FUNCTION file('souk_breadth.csv', 'CSV', 'a String') SELECT a --'

--- no statement
-- refused 400 SQL_NOT_READ_ONLY
/* nothing */;

--- a file that is written
-- refused 400 SQL_NOT_READ_ONLY
SELECT 1 INTO OUTFILE '/tmp/souk_breadth.csv';

--- a file that is written to again
-- refused 400 SQL_NOT_READ_ONLY
SELECT 1 INTO OUTFILE '/tmp/souk_breadth.csv' APPEND FORMAT CSV;

--- a format of the statement's own
-- refused 400 SQL_NOT_READ_ONLY
SELECT 1 FORMAT JSON;

--- a format of the statement's own, behind parentheses
-- refused 400 SQL_NOT_READ_ONLY
(SELECT 1) FORMAT TabSeparated;

--- a setting of the statement's own
-- refused 400 SQL_NOT_READ_ONLY
SELECT 1 SETTINGS max_threads = 1;

--- the setting that holds read-only, of the statement's own
-- refused 400 SQL_NOT_READ_ONLY
SELECT count() FROM staff SETTINGS readonly = 0;

--- a setting of a part of the statement
-- refused 400 SQL_NOT_READ_ONLY
SELECT count() FROM (SELECT 1 SETTINGS max_execution_time = 1000);

--- a format and a setting
-- refused 400 SQL_NOT_READ_ONLY
SELECT 1 FORMAT JSON SETTINGS max_threads = 1;

--- a way out of the parentheses
-- refused 400 VALIDATION_ERROR
SELECT 1) AS s UNION ALL SELECT (2;

--- a text without an end
-- refused 400 VALIDATION_ERROR
SELECT 'x;

--- a text that a backslash keeps open
-- refused 400 VALIDATION_ERROR
SELECT 'x\';

--- another product's placeholder
-- refused 400 VALIDATION_ERROR
SELECT $1;

--- a placeholder without a name
-- refused 400 VALIDATION_ERROR
SELECT ?;

--- this product's own parameter
-- refused 400 VALIDATION_ERROR
SELECT {n:Int64};

--- a choice between two, whose sign is a placeholder
-- refused 400 VALIDATION_ERROR
SELECT 1 > 0 ? 'yes' : 'no';

--- a parameter that nobody declared
-- refused 400 VALIDATION_ERROR
SELECT count() FROM staff WHERE name = :name;

--- a parameter that nothing uses
-- :name string "Ann"
-- refused 400 VALIDATION_ERROR
SELECT count() FROM staff;

--- another server's rows by HTTP
-- refused 502 SOURCE_ERROR read_only
SELECT count() FROM url('http://127.0.0.1:1/x', 'CSV', 'a String');

--- a file
-- refused 502 SOURCE_ERROR read_only
SELECT count() FROM file('/etc/passwd', 'LineAsString');

--- a file whose columns are told
-- refused 502 SOURCE_ERROR read_only
SELECT count() FROM file('souk_breadth.csv', 'CSV', 'a String');

--- another server's table
-- refused 502 SOURCE_ERROR read_only
SELECT count() FROM remote('127.0.0.1:1', system.one);

--- another server's table with TLS
-- refused 502 SOURCE_ERROR read_only
SELECT count() FROM remoteSecure('127.0.0.1:1', system.one);

--- an object of a store
-- refused 502 SOURCE_ERROR read_only
SELECT count() FROM s3('http://127.0.0.1:1/bucket/x.csv', 'CSV', 'a String');

--- an object of another store
-- refused 502 SOURCE_ERROR read_only
SELECT count() FROM gcs('http://127.0.0.1:1/bucket/x.csv', 'CSV', 'a String');

--- an object of a third store
-- refused 502 SOURCE_ERROR read_only
SELECT count() FROM azureBlobStorage('http://127.0.0.1:1', 'c', 'x', 'CSV');

--- a file of many machines
-- refused 502 SOURCE_ERROR read_only
SELECT count() FROM hdfs('hdfs://127.0.0.1:1/x', 'CSV', 'a String');

--- a lake
-- refused 502 SOURCE_ERROR read_only
SELECT count() FROM deltaLake('http://127.0.0.1:1/bucket/x', 'k', 's');

--- a table of a lake
-- refused 502 SOURCE_ERROR read_only
SELECT count() FROM iceberg('http://127.0.0.1:1/bucket/x', 'k', 's');

--- a table of a MySQL
-- refused 502 SOURCE_ERROR read_only
SELECT count() FROM mysql('127.0.0.1:1', 'd', 't', 'u', 'p');

--- a table of a PostgreSQL
-- refused 502 SOURCE_ERROR read_only
SELECT count() FROM postgresql('127.0.0.1:1', 'd', 't', 'u', 'p');

--- a table of a file of SQLite
-- refused 502 SOURCE_ERROR read_only
SELECT count() FROM sqlite('/tmp/souk_breadth.db', 't');

--- a table by ODBC
-- refused 502 SOURCE_ERROR read_only
SELECT count() FROM odbc('DSN=x', 'd', 't');

--- a table by JDBC
-- refused 502 SOURCE_ERROR read_only
SELECT count() FROM jdbc('x', 'd', 't');

--- documents of a MongoDB
-- refused 502 SOURCE_ERROR read_only
SELECT count() FROM mongodb('127.0.0.1:1', 'd', 't', 'u', 'p', 'a String');

--- keys of a Redis
-- refused 502 SOURCE_ERROR read_only
SELECT count() FROM redis('127.0.0.1:1', 'a', 'a String');

--- a program
-- refused 502 SOURCE_ERROR read_only
SELECT count() FROM executable('souk_breadth.sh', TabSeparated, 'a String');

--- a program that is given rows
-- refused 502 SOURCE_ERROR read_only
SELECT count() FROM executable('souk_breadth.sh', TabSeparated, 'a String', (SELECT 1));

--- rows of a text of a format
-- refused 502 SOURCE_ERROR read_only
SELECT count() FROM format(CSV, '1,2');

--- rows that never end
-- refused 502 SOURCE_ERROR read_only
SELECT count() FROM loop(staff);

--- another server's rows in a subquery
-- refused 502 SOURCE_ERROR read_only
SELECT (SELECT count() FROM url('http://127.0.0.1:1/x', 'CSV', 'a String'));

--- a file in a table expression
-- refused 502 SOURCE_ERROR read_only
WITH f AS (SELECT * FROM file('/etc/passwd', 'LineAsString')) SELECT count() FROM f;

--- a file whose name a caller gives
-- :name string "/etc/passwd"
-- refused 502 SOURCE_ERROR read_only
SELECT count() FROM file(:name, 'LineAsString');

--- a file as a table
-- refused 502 SOURCE_ERROR unknown_table
SELECT count() FROM `/etc/passwd`;

--- servers that are no cluster
-- refused 502 SOURCE_ERROR 701
SELECT count() FROM cluster('nothing', system.one);

--- users of the server
-- refused 502 SOURCE_ERROR permission_denied
SELECT count() FROM system.users;

--- a table that is not there
-- refused 502 SOURCE_ERROR unknown_table
SELECT count() FROM nowhere;

--- a database that is not there
-- refused 502 SOURCE_ERROR unknown_database
SELECT count() FROM nowhere.staff;

--- a column that is not there
-- refused 502 SOURCE_ERROR unknown_column
SELECT ident FROM staff;

--- a column that is not there, of an alias
-- refused 502 SOURCE_ERROR unknown_column
SELECT s.ident FROM staff AS s;

--- a function that is not there
-- refused 502 SOURCE_ERROR unknown_function
SELECT no_such_function(1);

--- a table function that is not there
-- refused 502 SOURCE_ERROR unknown_function
SELECT count() FROM no_such_function(1);

--- words in no order
-- refused 502 SOURCE_ERROR syntax_error
SELECT id FROM staff WHERE = 1;

--- types that do not fit
-- refused 502 SOURCE_ERROR 43
SELECT id + name FROM staff;

--- types that are not compared
-- refused 502 SOURCE_ERROR 386
SELECT count() FROM staff WHERE name > 1;

--- two kinds of number that have nothing in common
-- refused 502 SOURCE_ERROR 43
SELECT greatest(toInt64(9), 9.5);

--- a group that a column does not belong to
-- refused 502 SOURCE_ERROR 215
SELECT name FROM staff GROUP BY boss;

--- an aggregate of an aggregate
-- refused 502 SOURCE_ERROR 184
SELECT sum(sum(id)) FROM staff;

--- rows of unequal length
-- refused 502 SOURCE_ERROR 258
SELECT id FROM staff UNION ALL SELECT id, name FROM staff;

--- a union that does not say which
-- refused 502 SOURCE_ERROR 558
SELECT id FROM staff UNION SELECT id FROM staff;

--- an argument too few
-- refused 502 SOURCE_ERROR 42
SELECT plus(1);

--- a text of the seller's own that is no number
-- refused 502 SOURCE_ERROR invalid_value
SELECT sum(toInt32(name)) FROM staff;

--- a day of the seller's own that is none
-- refused 502 SOURCE_ERROR invalid_value
SELECT toDate('nonsense');

--- a number of the seller's own that has too many digits
-- refused 502 SOURCE_ERROR invalid_value
SELECT toDecimal32(99999, 8);

--- a division of the seller's own by zero
-- refused 502 SOURCE_ERROR invalid_value
SELECT intDiv(1, 0);

--- a key of the seller's own that is none
-- refused 502 SOURCE_ERROR invalid_value
SELECT toUUID('x');

--- a word of the seller's own that no enumeration has
-- refused 502 SOURCE_ERROR invalid_value
SELECT CAST('x' AS Enum8('a' = 1));

--- a regular expression of the seller's own that is none
-- refused 502 SOURCE_ERROR invalid_value
SELECT match('a', '(');

--- a document of the seller's own that is none
-- refused 502 SOURCE_ERROR invalid_value
SELECT '{'::JSON;

--- a dictionary that is not there
-- refused 502 SOURCE_ERROR 36
SELECT dictGet('nothing', 'a', 1);

--- a subquery of the seller's own with too many rows
-- refused 502 SOURCE_ERROR 125
SELECT (SELECT id FROM staff);

--- a function that complains in its own words
-- refused 502 SOURCE_ERROR 395
SELECT throwIf(1, 'closed on sundays');

--- the newest rows of a table that keeps all
-- refused 502 SOURCE_ERROR 181
SELECT count() FROM staff FINAL;

--- a part of a table that has none
-- refused 502 SOURCE_ERROR 141
SELECT count() FROM staff SAMPLE 1 / 2;

--- a text that is not UTF-8
-- refused 502 SOURCE_ERROR broken_text
SELECT unhex('ff');

--- a text of a fixed length that is not UTF-8
-- refused 502 SOURCE_ERROR broken_text
SELECT toFixedString(unhex('c3'), 1);

--- a text that is not UTF-8, in a list
-- refused 502 SOURCE_ERROR broken_text
SELECT [unhex('ff')];

--- a key of a map that is not UTF-8
-- refused 502 SOURCE_ERROR broken_text
SELECT map(unhex('ff'), 1);

--- what has any type
-- refused 502 SOURCE_ERROR column_type
SELECT any FROM documents WHERE id = 1;

--- what has any type, in a list
-- refused 502 SOURCE_ERROR column_type
SELECT [any] FROM documents WHERE id = 1;

--- what is in a document and has any type
-- refused 502 SOURCE_ERROR column_type
SELECT doc.n FROM documents WHERE id = 1;

--- a state of an aggregate
-- refused 502 SOURCE_ERROR column_type
SELECT average FROM sums WHERE team = 'Ajax';

--- a state of an aggregate that is computed
-- refused 502 SOURCE_ERROR column_type
SELECT avgState(id) FROM staff;

--- a pair of nothing
-- refused 502 SOURCE_ERROR column_type
SELECT tuple();

--- a vector by its bits
-- refused 502 SOURCE_ERROR column_type
SELECT CAST([1.5] AS QBit(Float32, 1));

--- no row where there should be one
-- refused 502 SOURCE_ERROR no_row
SELECT name FROM staff WHERE false;

--- two rows where there should be one
-- refused 502 SOURCE_ERROR
SELECT name FROM staff WHERE id < 3;

--- two values where there should be one
-- refused 502 SOURCE_ERROR
SELECT id, name FROM staff WHERE id = 1;

--- a text of the seller's own that is no number, beside a caller's
-- :n integer 5
-- refused 502 SOURCE_ERROR invalid_value
SELECT sum(toInt32(name)) FROM staff WHERE id < :n;

--- a text of the seller's own that is no number, beside a caller's text
-- :t string "Bob"
-- refused 502 SOURCE_ERROR invalid_value
SELECT sum(toInt32(name)) FROM staff WHERE name != :t;

--- a division of the seller's own by zero, beside a caller's number
-- :n integer 50
-- refused 502 SOURCE_ERROR invalid_value
SELECT sum(intDiv(1, pay)) FROM staff WHERE id < :n;

--- a regular expression of the seller's own that is none, beside a caller's text
-- :t string "Bob"
-- refused 502 SOURCE_ERROR invalid_value
SELECT count() FROM staff WHERE match(name, '(') AND name != :t;

--- a zone of the seller's own that is nowhere, beside a caller's text
-- :t string "Bob"
-- refused 502 SOURCE_ERROR 36
SELECT count() FROM staff WHERE toString(toTimezone(toDateTime(0), 'Nowhere/Land')) = :t;

--- a subquery of the seller's own with too many rows, beside a caller's number
-- :n integer 5
-- refused 502 SOURCE_ERROR 125
SELECT (SELECT id FROM staff WHERE id < :n);

--- a table that is not there, beside a caller's number
-- :n integer 1
-- refused 502 SOURCE_ERROR unknown_table
SELECT count() FROM nowhere WHERE id = :n;

--- a number of a caller's beside a text
-- :n integer 1
-- refused 502 SOURCE_ERROR 386
SELECT count() FROM staff WHERE name = :n;

--- a caller's words in a complaint do not choose whose fault it is
-- :t string "x"
-- refused 502 SOURCE_ERROR 395
SELECT throwIf(1, concat('Cannot parse string: ', :t));

--- a caller's text that is not UTF-8 when it is read
-- :t string "ff"
-- refused 502 SOURCE_ERROR broken_text
SELECT unhex(:t);

--- a caller's text that is no number
-- :t string "many"
-- refused 400 INVALID_PARAMETER 6
SELECT toInt32(:t);

--- a caller's text with an apostrophe that is no number
-- :t string "it's"
-- refused 400 INVALID_PARAMETER 6
SELECT :t::Int32;

--- a part of a caller's text that is no number
-- :t string "1,x,3"
-- refused 400 INVALID_PARAMETER 6
SELECT arraySum(x -> toInt32(x), splitByChar(',', :t));

--- a caller's text that is no number of a column
-- :t string "x"
-- refused 400 INVALID_PARAMETER 53
SELECT count() FROM staff WHERE id = :t;

--- a caller's text that is no exact number of a column
-- :t string "x"
-- refused 400 INVALID_PARAMETER 53
SELECT count() FROM staff WHERE pay = :t;

--- a caller's text that is no day
-- :t string "nonsense"
-- refused 400 INVALID_PARAMETER 38
SELECT toDate(:t);

--- a caller's text that is no day of a column
-- :t string "nonsense"
-- refused 400 INVALID_PARAMETER 38
SELECT count() FROM matches WHERE day = :t;

--- a caller's text that is no moment
-- :t string "nonsense"
-- refused 400 INVALID_PARAMETER 41
SELECT count() FROM matches WHERE played > toDateTime(:t);

--- a caller's text that is no moment of a column
-- :t string "nonsense"
-- refused 400 INVALID_PARAMETER 41
SELECT count() FROM matches WHERE played > :t;

--- a caller's text that has another pattern
-- :t string "nonsense"
-- refused 400 INVALID_PARAMETER 41
SELECT parseDateTime(:t, '%d.%m.%Y');

--- a caller's text that is no key
-- :t string "nonsense"
-- refused 400 INVALID_PARAMETER 376
SELECT toUUID(:t);

--- a caller's text that is no key of a column
-- :t string "nonsense"
-- refused 400 INVALID_PARAMETER 376
SELECT id FROM matches WHERE code = :t;

--- a caller's text that is no address of a column
-- :t string "nonsense"
-- refused 400 INVALID_PARAMETER 675
SELECT count() FROM texts WHERE v4 = :t;

--- a caller's text that is no long address
-- :t string "nonsense"
-- refused 400 INVALID_PARAMETER 676
SELECT toIPv6(:t);

--- a caller's network that is none
-- :t string "nonsense"
-- refused 400 INVALID_PARAMETER 6
SELECT count() FROM texts WHERE isIPAddressInRange(toString(v4), :t);

--- a caller's word that no enumeration has
-- :t string "nowhere"
-- refused 400 INVALID_PARAMETER 691
SELECT CAST(:t AS Enum8('a' = 1));

--- a caller's document that is none
-- :t string "{"
-- refused 400 INVALID_PARAMETER 117
SELECT toString(:t::JSON);

--- a caller's truth that is none
-- :t string "perhaps"
-- refused 400 INVALID_PARAMETER 467
SELECT :t::Bool;

--- a caller's regular expression that is none
-- :t string "("
-- refused 400 INVALID_PARAMETER 427
SELECT count() FROM staff WHERE match(name, :t);

--- a caller's regular expression that is a part of one
-- :t string "(a"
-- refused 400 INVALID_PARAMETER 427
SELECT count() FROM staff WHERE match(name, concat('^', :t));

--- a caller's pattern of LIKE that ends too early
-- :t string "a\\"
-- refused 400 INVALID_PARAMETER 25
SELECT count() FROM staff WHERE name LIKE :t;

--- a caller's bytes that are none
-- :t string "?"
-- refused 400 INVALID_PARAMETER 117
SELECT base64Decode(:t);

--- a caller's zone that is nowhere
-- :t string "Nowhere/Land"
-- refused 400 INVALID_PARAMETER 36
SELECT formatDateTime(toDateTime(0), '%Y', :t);

--- a caller's part of a day that no day has
-- :t string "fortnights"
-- refused 400 INVALID_PARAMETER 36
SELECT dateDiff(:t, toDate('2026-01-01'), toDate('2026-01-02'));

--- a caller's number that nothing is divided by
-- :n integer 0
-- refused 400 INVALID_PARAMETER 153
SELECT intDiv(10, :n);

--- a caller's number that leaves no rest
-- :n integer 0
-- refused 400 INVALID_PARAMETER 153
SELECT sum(id) % :n FROM staff;

--- a caller's number that is too large for its type
-- :n integer 300
-- refused 400 INVALID_PARAMETER 70
SELECT accurateCast(:n, 'Int8');

--- a caller's number that has too many digits
-- :n integer 99999
-- refused 400 INVALID_PARAMETER 407
SELECT toDecimal32(:n, 8);

--- a caller's number that is too large beside the seller's
-- :n integer 9223372036854775807
-- refused 400 INVALID_PARAMETER 407
SELECT max(d64) * :n FROM numbers_of_all;

--- a caller's page of nothing
-- :n integer null
-- refused 400 INVALID_PARAMETER 440
SELECT count() FROM (SELECT id FROM staff ORDER BY id LIMIT :n);

--- a caller's page of a half
-- :n number 1.5
-- refused 400 INVALID_PARAMETER 440
SELECT count() FROM (SELECT id FROM staff ORDER BY id LIMIT :n);

--- a caller's list that is too long
-- :n integer 1000000000
-- refused 400 INVALID_PARAMETER 69
SELECT length(range(toUInt64(:n)));

--- a caller's text that is too long
-- :n integer 10000000000
-- refused 400 INVALID_PARAMETER 131
SELECT length(repeat('x', :n));

--- a caller's text with a character that ends a statement
-- :t string "a\u0000b"
-- refused 400 INVALID_PARAMETER
SELECT :t;

--- a caller's day that is none
-- :day date "2026-02-30"
-- refused 400 INVALID_PARAMETER
SELECT count() FROM matches WHERE day = :day;

--- a caller's day before the calendar
-- :day date "1899-12-31"
-- refused 400 INVALID_PARAMETER
SELECT count() FROM matches WHERE far = :day;

--- a caller's day after the calendar
-- :day date "2300-01-01"
-- refused 400 INVALID_PARAMETER
SELECT count() FROM matches WHERE far = :day;

--- a caller's moment before the calendar
-- :at timestamp "1899-12-31T23:59:59.999999Z"
-- refused 400 INVALID_PARAMETER
SELECT count() FROM matches WHERE played = :at;

--- a caller's moment after the calendar
-- :at timestamp "2300-01-01T00:00:00Z"
-- refused 400 INVALID_PARAMETER
SELECT count() FROM matches WHERE played = :at;

--- a caller's text where a number belongs
-- :n integer "7"
-- refused 400 INVALID_PARAMETER
SELECT :n + 1;

--- a caller's number that is larger than any
-- :n integer 9223372036854775808
-- refused 400 INVALID_PARAMETER
SELECT :n;
