-- What is not run, or fails, with the status, the code and, where there is one, the connector's. breadth.rs says how this is read.

--- an insert
-- refused 400 SQL_NOT_READ_ONLY
INSERT INTO staff VALUES (8, 'Hal', 1, 1);

--- an insert or an update
-- refused 400 SQL_NOT_READ_ONLY
INSERT INTO staff VALUES (1, 'Hal', 1, 1) ON CONFLICT (id) DO UPDATE SET pay = 0;

--- an update
-- refused 400 SQL_NOT_READ_ONLY
UPDATE staff SET pay = 0;

--- a delete
-- refused 400 SQL_NOT_READ_ONLY
DELETE FROM staff;

--- a merge
-- refused 400 SQL_NOT_READ_ONLY
MERGE INTO staff USING roads ON staff.id = roads.origin WHEN MATCHED THEN DELETE;

--- a table without its rows
-- refused 400 SQL_NOT_READ_ONLY
TRUNCATE staff;

--- a new table
-- refused 400 SQL_NOT_READ_ONLY
CREATE TABLE two AS SELECT 1 AS v;

--- a new table of the session's own
-- refused 400 SQL_NOT_READ_ONLY
CREATE TEMP TABLE two (v INTEGER);

--- a new macro
-- refused 400 SQL_NOT_READ_ONLY
CREATE MACRO tripled(x) AS x * 3;

--- a table less
-- refused 400 SQL_NOT_READ_ONLY
DROP TABLE staff;

--- another column
-- refused 400 SQL_NOT_READ_ONLY
ALTER TABLE staff ADD COLUMN two INTEGER;

--- words about a table
-- refused 400 SQL_NOT_READ_ONLY
COMMENT ON TABLE staff IS 'x';

--- a file that is written
-- refused 400 SQL_NOT_READ_ONLY
COPY staff TO '/tmp/souk_breadth.csv';

--- a query whose answer is a file
-- refused 400 SQL_NOT_READ_ONLY
COPY (SELECT * FROM staff) TO '/tmp/souk_breadth.parquet' (FORMAT parquet);

--- a file that is read into a table
-- refused 400 SQL_NOT_READ_ONLY
COPY staff FROM '/tmp/souk_breadth.csv';

--- a database that leaves
-- refused 400 SQL_NOT_READ_ONLY
EXPORT DATABASE '/tmp/souk_breadth';

--- a database that comes
-- refused 400 SQL_NOT_READ_ONLY
IMPORT DATABASE '/tmp/souk_breadth';

--- another database
-- refused 400 SQL_NOT_READ_ONLY
ATTACH '/tmp/souk_breadth.db' AS other;

--- a database less
-- refused 400 SQL_NOT_READ_ONLY
DETACH memory;

--- another schema
-- refused 400 SQL_NOT_READ_ONLY
USE memory.main;

--- a setting
-- refused 400 SQL_NOT_READ_ONLY
SET threads = 1;

--- a setting of the server's
-- refused 400 SQL_NOT_READ_ONLY
SET GLOBAL TimeZone = 'Asia/Tokyo';

--- a setting that goes back
-- refused 400 SQL_NOT_READ_ONLY
RESET threads;

--- a PRAGMA that asks
-- refused 400 SQL_NOT_READ_ONLY
PRAGMA table_info('staff');

--- a PRAGMA that sets
-- refused 400 SQL_NOT_READ_ONLY
PRAGMA threads = 1;

--- an extension that is installed
-- refused 400 SQL_NOT_READ_ONLY
INSTALL spatial;

--- an extension that is loaded
-- refused 400 SQL_NOT_READ_ONLY
LOAD spatial;

--- extensions that are made new
-- refused 400 SQL_NOT_READ_ONLY
UPDATE EXTENSIONS;

--- a function that is called
-- refused 400 SQL_NOT_READ_ONLY
CALL range(3);

--- a checkpoint
-- refused 400 SQL_NOT_READ_ONLY
CHECKPOINT;

--- a transaction
-- refused 400 SQL_NOT_READ_ONLY
BEGIN TRANSACTION;

--- the end of a transaction
-- refused 400 SQL_NOT_READ_ONLY
ROLLBACK;

--- a vacuum
-- refused 400 SQL_NOT_READ_ONLY
VACUUM staff;

--- statistics
-- refused 400 SQL_NOT_READ_ONLY
ANALYZE;

--- a plan
-- refused 400 SQL_NOT_READ_ONLY
EXPLAIN ANALYZE DELETE FROM staff;

--- a statement that is kept
-- refused 400 SQL_NOT_READ_ONLY
PREPARE s AS SELECT 1;

--- a statement that was kept
-- refused 400 SQL_NOT_READ_ONLY
EXECUTE s;

--- a secret
-- refused 400 SQL_NOT_READ_ONLY
CREATE SECRET s (TYPE http, BEARER_TOKEN 'x');

--- a variable
-- refused 400 SQL_NOT_READ_ONLY
SET VARIABLE v = 1;

--- a description
-- refused 400 SQL_NOT_READ_ONLY
DESCRIBE staff;

--- a summary
-- refused 400 SQL_NOT_READ_ONLY
SUMMARIZE staff;

--- rows first, which the words of a query do not have
-- refused 400 SQL_NOT_READ_ONLY
FROM staff;

--- a pivot as a statement
-- refused 400 SQL_NOT_READ_ONLY
PIVOT matches ON side USING count(*);

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

--- a delete behind a table expression
-- refused 400 SQL_NOT_READ_ONLY
WITH x AS (SELECT 1) DELETE FROM staff;

--- an insert behind a table expression
-- refused 400 SQL_NOT_READ_ONLY
WITH x AS (SELECT 1) INSERT INTO staff SELECT 8, 'Hal', 1, 1 FROM x;

--- no statement
-- refused 400 SQL_NOT_READ_ONLY
/* nothing */ ;

--- an argument by its name, which takes => here
-- refused 400 SQL_NOT_READ_ONLY
SELECT struct_pack(a := 1)::VARCHAR;

--- a text without an end
-- refused 400 VALIDATION_ERROR
SELECT 'x;

--- a backslash before the end of a text
-- refused 400 VALIDATION_ERROR
SELECT 'a%' LIKE 'a\%' ESCAPE '\';

--- a text between dollars
-- refused 400 VALIDATION_ERROR
SELECT $$x$$;

--- another product's placeholder
-- refused 400 VALIDATION_ERROR
SELECT $1;

--- a variable of the session
-- refused 400 VALIDATION_ERROR
SELECT $name;

--- a parameter that nobody declared
-- refused 400 VALIDATION_ERROR
SELECT count(*) FROM staff WHERE name = :name;

--- a parameter that nothing uses
-- :name string "Ann"
-- refused 400 VALIDATION_ERROR
SELECT count(*) FROM staff;

--- a sequence that goes on
-- refused 502 SOURCE_ERROR read_only
SELECT nextval('tickets');

--- a file by a function
-- refused 502 SOURCE_ERROR read_only
SELECT count(*) FROM read_text('/etc/hostname');

--- a file of commas
-- refused 502 SOURCE_ERROR read_only
SELECT count(*) FROM read_csv('/etc/passwd');

--- a file of columns
-- refused 502 SOURCE_ERROR read_only
SELECT count(*) FROM parquet_scan('/tmp/souk_breadth.parquet');

--- a file of documents
-- refused 502 SOURCE_ERROR read_only
SELECT count(*) FROM read_json_auto('/tmp/souk_breadth.json');

--- a file of bytes, in a subquery
-- refused 502 SOURCE_ERROR read_only
SELECT (SELECT size FROM read_blob('/etc/hostname'));

--- names of files
-- refused 502 SOURCE_ERROR read_only
SELECT count(*) FROM glob('/etc/*');

--- names of files in a table expression
-- refused 502 SOURCE_ERROR read_only
WITH f AS (SELECT file FROM glob('/etc/*')) SELECT count(*) FROM f;

--- a file as a table
-- refused 502 SOURCE_ERROR read_only
SELECT count(*) FROM '/etc/hostname';

--- a file as a table with a name of its own
-- refused 502 SOURCE_ERROR read_only
SELECT count(*) FROM "souk_breadth.csv";

--- a file as a table in a schema
-- refused 502 SOURCE_ERROR read_only
SELECT count(*) FROM souk_breadth.parquet;

--- a file of another server
-- refused 502 SOURCE_ERROR read_only
SELECT count(*) FROM 'https://example.com/a.csv';

--- a database in a file
-- refused 502 SOURCE_ERROR read_only
SELECT count(*) FROM sqlite_scan('/tmp/souk_breadth.db', 'staff');

--- a text that is run
-- refused 502 SOURCE_ERROR read_only
SELECT * FROM query('SELECT 1');

--- a table by a text
-- refused 502 SOURCE_ERROR read_only
SELECT count(*) FROM query_table('staff');

--- settings by a function
-- refused 502 SOURCE_ERROR read_only
SELECT count(*) FROM duckdb_settings();

--- secrets by a function
-- refused 502 SOURCE_ERROR read_only
SELECT count(*) FROM duckdb_secrets();

--- a setting by its name
-- refused 502 SOURCE_ERROR read_only
SELECT current_setting('threads');

--- settings as a table
-- refused 502 SOURCE_ERROR read_only
SELECT count(*) FROM pg_settings;

--- databases as a table
-- refused 502 SOURCE_ERROR read_only
SELECT count(*) FROM duckdb_databases;

--- what others have asked
-- refused 502 SOURCE_ERROR read_only
SELECT count(*) FROM duckdb_logs;

--- the environment of the server
-- refused 502 SOURCE_ERROR read_only
SELECT getenv('HOME');

--- a line in the server's log
-- refused 502 SOURCE_ERROR read_only
SELECT write_log('x');

--- a plan that is bound
-- refused 502 SOURCE_ERROR read_only
SELECT json_serialize_plan('SELECT 1')::VARCHAR;

--- a statement of its parser's
-- refused 502 SOURCE_ERROR read_only
SELECT * FROM json_execute_serialized_sql('{}');

--- a PRAGMA as a function
-- refused 502 SOURCE_ERROR read_only
SELECT count(*) FROM pragma_table_info('staff');

--- an extension of the server itself
-- refused 502 SOURCE_ERROR read_only
SELECT count(*) FROM quack_active_connections();

--- a macro of the seller's that is a table
-- refused 502 SOURCE_ERROR read_only
SELECT count(*) FROM of_team('Ajax');

--- a text with escapes
-- refused 502 SOURCE_ERROR escapes_unsupported
SELECT E'a\tb';

--- a blank that is none of ASCII's
-- refused 502 SOURCE_ERROR blank_unclear
SELECT 1 AS a;

--- a name that values are called by
-- refused 502 SOURCE_ERROR name_taken
SELECT 'souks_value_0';

--- a statement that nobody can read
-- refused 502 SOURCE_ERROR syntax_error
SELECT FROM WHERE;

--- a table that is not there
-- refused 502 SOURCE_ERROR unknown_table
SELECT id FROM stuff;

--- a schema that is not there
-- refused 502 SOURCE_ERROR unknown_schema
SELECT id FROM nowhere.stuff;

--- a table that is not read
-- refused 502 SOURCE_ERROR unknown_table
SELECT roads.km FROM staff;

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
-- refused 502 SOURCE_ERROR read_only
SELECT count(*) FROM no_such_function(1);

--- types that do not fit
-- refused 502 SOURCE_ERROR type_mismatch
SELECT id + name FROM staff;

--- types that are not compared
-- refused 502 SOURCE_ERROR type_mismatch
SELECT count(*) FROM staff WHERE name > 1;

--- a day and a number of a caller's, which is as large as any
-- :n integer 7
-- refused 502 SOURCE_ERROR type_mismatch
SELECT DATE '2026-01-01' + :n;

--- a group that a column does not belong to
-- refused 502 SOURCE_ERROR
SELECT name FROM staff GROUP BY boss;

--- a number of the seller's own that is too large
-- refused 502 SOURCE_ERROR invalid_value
SELECT 2147483647 + 1;

--- a number of the seller's own that is too large, beside a caller's
-- :n integer 5
-- refused 502 SOURCE_ERROR invalid_value
SELECT 2147483647 + 1 + :n;

--- a text of the seller's own that is no number
-- refused 502 SOURCE_ERROR invalid_value
SELECT sum(name::INTEGER) FROM staff;

--- a text of the seller's own that is no number, beside a caller's
-- :n integer 5
-- refused 502 SOURCE_ERROR invalid_value
SELECT sum(name::INTEGER) FROM staff WHERE id < :n;

--- a number of the seller's own that has too many digits
-- refused 502 SOURCE_ERROR invalid_value
SELECT 12345.678::DECIMAL(4, 2);

--- a root of the seller's own
-- refused 502 SOURCE_ERROR
SELECT sqrt(-1);

--- a document of the seller's own that is none
-- refused 502 SOURCE_ERROR invalid_value
SELECT '{'::JSON;

--- a subquery of the seller's own with too many rows
-- refused 502 SOURCE_ERROR
SELECT (SELECT id FROM staff);

--- a function that complains in its own words
-- refused 502 SOURCE_ERROR sql_error
SELECT error('closed on sundays');

--- a caller's words in a complaint do not choose whose fault it is
-- :t string "Authorization failed"
-- refused 502 SOURCE_ERROR sql_error
SELECT error('closed: ' || :t);

--- a regular expression that is none
-- refused 502 SOURCE_ERROR
SELECT regexp_matches('a', '(');

--- a day without an end
-- refused 502 SOURCE_ERROR infinite_time
SELECT DATE 'infinity';

--- a moment without a beginning
-- refused 502 SOURCE_ERROR infinite_time
SELECT TIMESTAMPTZ '-infinity';

--- nanoseconds without an end
-- refused 502 SOURCE_ERROR infinite_time
SELECT 'infinity'::TIMESTAMP_NS;

--- a day that no calendar here has
-- refused 502 SOURCE_ERROR distant_time
SELECT DATE '100000-01-01';

--- a moment that no calendar here has
-- refused 502 SOURCE_ERROR distant_time
SELECT TIMESTAMP '100000-01-01 00:00:00';

--- a number of more digits than are told
-- refused 502 SOURCE_ERROR
SELECT ('1' || repeat('0', 700))::BIGNUM;

--- a type that no value here has
-- refused 502 SOURCE_ERROR unsupported_type
SELECT 1::VARIANT;

--- a map by keys that are nested
-- refused 502 SOURCE_ERROR unsupported_type
SELECT MAP {[1]: 2};

--- no row where there should be one
-- refused 502 SOURCE_ERROR no_row
SELECT name FROM staff WHERE false;

--- two rows where there should be one
-- refused 502 SOURCE_ERROR
SELECT name FROM staff WHERE id < 3;

--- two values where there should be one
-- refused 502 SOURCE_ERROR
SELECT id, name FROM staff WHERE id = 1;

--- a caller's text that is no number
-- :t string "many"
-- refused 400 INVALID_PARAMETER invalid_value
SELECT :t::INTEGER;

--- a caller's text with an apostrophe that is no number
-- :t string "it's"
-- refused 400 INVALID_PARAMETER invalid_value
SELECT :t::INTEGER;

--- a caller's text that is no day
-- :t string "nonsense"
-- refused 400 INVALID_PARAMETER invalid_value
SELECT :t::DATE;

--- a caller's text that is no moment
-- :t string "nonsense"
-- refused 400 INVALID_PARAMETER invalid_value
SELECT count(*) FROM matches WHERE played > :t::TIMESTAMPTZ;

--- a caller's text that is no time
-- :t string "25:00"
-- refused 400 INVALID_PARAMETER invalid_value
SELECT :t::TIME;

--- a caller's text that is no key
-- :key string "nonsense"
-- refused 400 INVALID_PARAMETER invalid_value
SELECT id FROM matches WHERE key = :key;

--- a caller's word that no enumeration has
-- :side string "nowhere"
-- refused 400 INVALID_PARAMETER invalid_value
SELECT count(*) FROM matches WHERE side = :side::side;

--- a caller's span of time that is none
-- :span string "nonsense"
-- refused 400 INVALID_PARAMETER invalid_value
SELECT max(day) - :span::INTERVAL FROM matches;

--- a caller's document that is none
-- :doc string "{"
-- refused 400 INVALID_PARAMETER invalid_value
SELECT json_extract_string(:doc, '$.a');

--- a caller's truth that is none
-- :t string "perhaps"
-- refused 400 INVALID_PARAMETER invalid_value
SELECT :t::BOOLEAN;

--- a caller's text that has another pattern
-- :t string "nonsense"
-- refused 400 INVALID_PARAMETER invalid_value
SELECT strptime(:t, '%d.%m.%Y');

--- a caller's zone that is nowhere
-- :zone string "Nowhere/Land"
-- refused 400 INVALID_PARAMETER invalid_value
SELECT count(*) FROM matches WHERE played AT TIME ZONE :zone > TIMESTAMP '2026-03-01 00:00:00';

--- a caller's part of a day that no day has
-- :part string "fortnights"
-- refused 400 INVALID_PARAMETER invalid_value
SELECT date_part(:part, DATE '2026-01-01');

--- a caller's numbers whose sum is too large
-- :i integer 9223372036854775807
-- :j integer 1
-- refused 400 INVALID_PARAMETER invalid_value
SELECT :i + :j;

--- a caller's number that is too large beside the seller's
-- :n integer 9223372036854775807
-- refused 400 INVALID_PARAMETER invalid_value
SELECT max(views) + :n FROM matches;

--- a caller's number that is too large for its type
-- :n integer 300
-- refused 400 INVALID_PARAMETER invalid_value
SELECT :n::TINYINT;

--- a caller's number that has too many digits
-- :n integer 12345
-- refused 400 INVALID_PARAMETER invalid_value
SELECT :n::DECIMAL(4, 2);

--- a caller's number with a fraction that has too many digits
-- :n number 12345.5
-- refused 400 INVALID_PARAMETER invalid_value
SELECT :n::DECIMAL(4, 2);

--- a caller's number that is too large for a whole one
-- :n number 1e300
-- refused 400 INVALID_PARAMETER invalid_value
SELECT :n::BIGINT;

--- a caller's page before the first one
-- :n integer -1
-- refused 400 INVALID_PARAMETER invalid_value
SELECT string_agg(id, ',') FROM (SELECT id FROM staff ORDER BY id LIMIT :n) AS s;

--- a caller's text with a character that ends a statement
-- :t string "a\u0000b"
-- refused 400 INVALID_PARAMETER
SELECT :t;

--- a caller's day that is none
-- :day date "2026-02-30"
-- refused 400 INVALID_PARAMETER
SELECT count(*) FROM matches WHERE day = :day;

--- a caller's text where a number belongs
-- :n integer "7"
-- refused 400 INVALID_PARAMETER
SELECT :n + 1;

--- a caller's number that is larger than any
-- :n integer 9223372036854775808
-- refused 400 INVALID_PARAMETER
SELECT :n;
