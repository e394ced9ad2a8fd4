-- A value of each type, at both of its ends and NULL. breadth.rs says how this is read.

--- whole numbers at their ends
SELECT CAST(-128 AS TINYINT) AS a, 127Y AS b, CAST(-32768 AS SMALLINT) AS c, 32767S AS d, -2147483648 AS e, 2147483647 AS f, -9223372036854775808 AS g, 9223372036854775807L AS h;

--- truth, and what is unknown
SELECT n AS id, n > 2 AS a, nullif(n > 2, false) AS b, (n = 2) IS TRUE AS c, CAST(NULL AS BOOLEAN) IS NULL AS d, CAST('f' AS BOOLEAN) AS e FROM VALUES (1), (2), (3) AS v (n);

--- exact numbers keep their scale
SELECT 1.10 AS a, CAST(1.00 AS DECIMAL(5, 3)) AS b, 0.000001 AS c, CAST(-0.5 AS DECIMAL(4, 1)) AS d, CAST(12345678901234567890.9876543210 AS DECIMAL(38, 10)) AS e, CAST(100 AS DECIMAL(5, 0)) AS f, 007.50 AS g,
    CAST(0 AS DECIMAL(18, 18)) AS h, CAST(-0.000000001 AS DECIMAL(9, 9)) AS i;

--- exact numbers at their ends
SELECT CAST('9999999999999999999999999999.9999999999' AS DECIMAL(38, 10)) AS a, CAST('-9999999999999999999999999999.9999999999' AS DECIMAL(38, 10)) AS b, CAST('99999999999999999999999999999999999999' AS DECIMAL(38, 0)) AS c,
    CAST('-0.00000000000000000000000000000000000001' AS DECIMAL(38, 38)) AS d, 99.99BD AS e, CAST(9999999.99 AS DECIMAL(9, 2)) AS f, 999999999999999999BD AS g, CAST(0.0000000001 AS DECIMAL(38, 10)) AS h,
    CAST(0 AS DECIMAL(38, 38)) AS i, 1e-7BD AS j;

--- exact numbers in expressions
SELECT id, pay * 3 AS a, pay / 3 AS b, pay + 0.001 AS c, sum(pay) OVER () AS d, avg(pay) OVER () AS e, pay % 7 AS f, -pay AS g, round(pay, 1) AS h, CAST(pay AS INT) AS i, pay DIV 7 AS j, floor(pay, 1) AS k FROM staff;

--- double precision at its ends
SELECT 4.9e-324D AS a, 2.2250738585072014e-308D AS b, 1.7976931348623157e308D AS c, -1.7976931348623157e308D AS d, CAST(9007199254740993 AS DOUBLE) AS e, 0.1D + 0.2D AS f, 1e15D AS g, 1e16D AS h, 1e17D AS i,
    123456789.125D AS j, 1e-5D AS k, -0.0D AS l, 1 / 3 AS m, 100D AS n, 1e22D AS o, 2e23D AS p, 1e7 AS q, 1e-3D AS r;

--- double precision that is no number
SELECT CAST('NaN' AS DOUBLE) AS a, CAST('Infinity' AS DOUBLE) AS b, CAST('-Infinity' AS DOUBLE) AS c, CAST('NaN' AS FLOAT) AS d, CAST('inf' AS FLOAT) AS e, CAST('-inf' AS FLOAT) AS f;

--- floats have their own digits
SELECT 0.1F AS a, 1.1F AS b, CAST(1 / 3 AS FLOAT) AS c, 16777216F AS d, 3.14159274F AS e, 1e-10F AS f, 123.456F AS g, -0.0F AS h, 1e-30F AS i, 1e-40F AS j, 1e9F AS k, CAST('3.4028235e38' AS FLOAT) AS l, -1e10F AS m,
    33554434F AS n, 8.41e21F AS o, 2.0E-3F AS p;

--- floats in expressions
SELECT id, ratio, ratio * 2 AS twice, CAST(ratio AS DOUBLE) AS wide, CAST(ratio AS DECIMAL(12, 6)) AS exact, CAST(ratio AS STRING) AS told, weight FROM matches;

--- texts that a table of commas finds hard
SELECT id, v, length(v) AS n, octet_length(v) AS bytes, v IS NULL AS missing FROM texts;

--- ways to write a text
SELECT 'it\'s' AS a, '' AS b, r'\n stays' AS c, '\t\n' AS d, repeat('é', 10000) AS e, 'A' COLLATE UTF8_LCASE AS f, "double" AS g, 'in ' 'parts' AS h, ' ' AS i, '\u00e9\x41\101' AS j, 'a;b' AS k, '/* no comment */ -- none' AS l;

--- texts of a length
SELECT id, code, name, length(code) AS n, code || '|' AS told FROM fixed;

--- bytes
SELECT X'' AS a, X'00FF' AS b, CAST('größe' AS BINARY) AS c, unbase64('AAECAwQ=') AS d, unhex('00017fff') AS e, encode('größe', 'UTF-16') AS f, octet_length(X'0102') AS n, CAST(repeat('x', 100) AS BINARY) AS g, md5('a') AS h,
    sha2('a', 256) AS i, unhex(md5('a')) AS j;

--- days, also before the first and after the last year of four digits
SELECT DATE '2026-02-28' AS a, DATE '0001-01-01' AS b, DATE '9999-12-31' AS f, DATE '1970-01-01' AS i, DATE '2000-02-29' AS j, DATE '1582-10-10' AS k;

--- moments
SELECT TIMESTAMP '2026-01-01 00:00:00.000001+14:00' AS a, TIMESTAMP '0001-01-01 12:00:00Z' AS b, TIMESTAMP '9999-12-31 23:59:59.999999Z' AS d, TIMESTAMP '1970-01-01 00:00:00Z' AS e, TIMESTAMP '1969-12-31 23:59:59.5Z' AS f,
    TIMESTAMP '2026-01-01 00:00:00-00:30' AS g, TIMESTAMP '2026-01-01 10:00:00 Asia/Tokyo' AS i, to_timestamp('2026-03-29 02:30:00 Europe/Berlin', 'yyyy-MM-dd HH:mm:ss VV') AS j, TIMESTAMP '1582-10-10 01:02:03Z' AS k,
    timestamp_micros(-1) AS l, to_utc_timestamp('2026-07-01 12:00:00', 'Europe/Berlin') AS m;

--- what a clock shows without a zone
SELECT TIMESTAMP_NTZ '2026-02-28 23:59:59.999999' AS a, TIMESTAMP_NTZ '0001-01-01 00:00:00' AS b, TIMESTAMP_NTZ '9999-12-31 23:59:59.5' AS d, TIMESTAMP_NTZ '1970-01-01 00:00:00' AS e, TIMESTAMP_NTZ '1582-10-10 01:02:03' AS f,
    convert_timezone('UTC', 'Europe/Berlin', TIMESTAMP_NTZ '2026-07-01 12:00:00') AS g, TIMESTAMP_NTZ '1969-12-31 23:59:59.999999' AS h, make_timestamp_ntz(2026, 3, 29, 2, 30, 0.000001) AS i;

--- times of day
SELECT 1 AS id, TIME '00:00:00' AS a, TIME '23:59:59.999999' AS b, TIME '12:34:56.7' AS c, CAST('10:11' AS TIME(0)) AS d, make_time(1, 2, 3.5) AS e;

--- spans of months
SELECT INTERVAL '1-2' YEAR TO MONTH AS a, INTERVAL '-14' MONTH AS b, INTERVAL '3' YEAR AS c, make_ym_interval(0, 0) AS d, 'x' AS e;

--- spans of time
SELECT INTERVAL '2 03:04:05.5' DAY TO SECOND AS a, INTERVAL '-1' SECOND AS b, INTERVAL '100000' HOUR AS c, INTERVAL '1' DAY AS d, TIMESTAMP '2026-01-02 00:00:00Z' - TIMESTAMP '2026-01-01 00:00:00.000001Z' AS e, 'x' AS f,
    DATE '2026-03-01' - DATE '2024-02-29' AS g, INTERVAL '0' DAY AS h;

--- lists
SELECT array(1, NULL, 3) AS a, CAST(array() AS ARRAY<INT>) AS b, array(array(1), array(), NULL, array(2, 3)) AS c, array('a', NULL, 'b"c\\d') AS d, array(1.50, 2.25) AS e, array(true, false, NULL) AS f,
    array(DATE '2026-02-28') AS g, array(X'AA00') AS h, array(-0.5D, 1.5D, 100D) AS j, 1 AS id;

--- lists of what JSON has no number for
SELECT array(CAST('nan' AS DOUBLE), CAST('inf' AS DOUBLE), CAST('-inf' AS DOUBLE)) AS a, array(CAST('inf' AS FLOAT)) AS b, array(9223372036854775807) AS c, array(CAST(0.000001 AS DECIMAL(38, 10))) AS f, 1 AS id,
    array(CAST('12345678901234567890.00100' AS DECIMAL(38, 5)), NULL) AS g;

--- lists of times
SELECT array(TIMESTAMP '2026-02-28 01:02:03+01:00') AS a, array(TIMESTAMP_NTZ '2026-02-28 01:02:03.5') AS b, array(DATE '0001-01-01', DATE '9999-12-31') AS i, array(TIMESTAMP '1000-01-01 00:00:00Z', TIMESTAMP '9999-12-31 23:59:59.999999Z') AS j,
    array(TIMESTAMP_NTZ '0001-01-01 00:00:00') AS k, array(TIMESTAMP '1582-10-10 01:02:03Z', TIMESTAMP '1969-12-31 23:59:59.999999Z') AS l, 1 AS id;

--- structs
SELECT named_struct('a', 1, 'b', NULL, 'c', array(named_struct('d', 'x'))) AS a, named_struct('Name with "quotes"', 1.50, 'größe', DATE '2026-01-01') AS b, struct(1 AS x, 'z' AS y) AS c,
    CAST(NULL AS STRUCT<a: INT>) AS d, named_struct('a', named_struct('b', named_struct('c', CAST(NULL AS INT)))) AS e, 1 AS id, named_struct('t', TIMESTAMP '2026-01-01 00:00:00.5Z', 'n', TIMESTAMP_NTZ '2026-01-01 00:00:00') AS f;

--- structs out of rows
SELECT id, seat, seat.spot[0] AS x, seat.* FROM matches;

--- maps
SELECT map('k', 1.50, 'l', NULL) AS a, map(1, 'x', 2, 'y') AS b, CAST(map() AS MAP<STRING, INT>) AS c, map(1.50, true) AS e, map('home', named_struct('a', 1)) AS f, map(true, 1) AS g, map('a "b"', CAST(NULL AS INT)) AS i, 1 AS id,
    map(9223372036854775807, DATE '2026-01-01') AS j;

--- maps that are asked
SELECT id, counts, map_keys(counts) AS keys, map_values(counts) AS vals, counts['goals'] AS a, cardinality(counts) AS n, map_entries(counts) AS entries, try_element_at(counts, 'none') AS none FROM matches;

--- documents of any kind
SELECT parse_json('{"a": [1, 2.5, null, "e"], "b": {}}') AS a, parse_json('[]') AS b, parse_json('null') AS c, parse_json('"text"') AS d, parse_json('true') AS f, 1 AS id, parse_json('{"n": 12345678901234567890.125}') AS g,
    variant_get(parse_json('{"a": {"b": 7}}'), '$.a.b', 'int') AS h, to_variant_object(named_struct('k', 1.25)) AS i, CAST(5 AS VARIANT) AS j;

--- documents as texts
SELECT id, to_json(seat) AS a, to_json(tags) AS b, get_json_object('{"a":{"b":1.50}}', '$.a.b') AS c, from_json('{"x":1,"y":[1.5]}', 'x INT, y ARRAY<DOUBLE>') AS d, schema_of_json('{"a":1}') AS e FROM matches;

--- a NULL of each type
SELECT 1 AS id, CAST(NULL AS BOOLEAN) AS a, CAST(NULL AS TINYINT) AS b, CAST(NULL AS SMALLINT) AS c, CAST(NULL AS INT) AS d, CAST(NULL AS BIGINT) AS e, CAST(NULL AS FLOAT) AS f, CAST(NULL AS DOUBLE) AS g,
    CAST(NULL AS DECIMAL(38, 10)) AS h, CAST(NULL AS STRING) AS j, CAST(NULL AS BINARY) AS k, CAST(NULL AS DATE) AS m, CAST(NULL AS TIME) AS n, CAST(NULL AS TIMESTAMP) AS o, CAST(NULL AS TIMESTAMP_NTZ) AS p,
    CAST(NULL AS INTERVAL YEAR TO MONTH) AS q, CAST(NULL AS INTERVAL DAY TO SECOND) AS r, CAST(NULL AS ARRAY<INT>) AS x, CAST(NULL AS STRUCT<a: INT>) AS y, CAST(NULL AS MAP<STRING, INT>) AS z, CAST(NULL AS VARIANT) AS v, NULL AS ad;

--- NULL beside values of each type
SELECT id, goals, rival, fee, weight, tags, seat, counts, is_final FROM matches;

--- times beside rows
SELECT id, played, shown, day, CAST(played AS DATE) AS on_day, add_months(day, -1) AS earlier, datediff(day, DATE '2026-01-01') AS days, played - TIMESTAMP '2026-01-01 00:00:00Z' AS since, unix_micros(played) AS micros FROM matches;

--- no rows of any type
SELECT * FROM empty;

--- no rows of a statement
SELECT id, team, array(id) AS list, named_struct('a', id) AS struct FROM matches WHERE false;

--- rows of several chunks
SELECT id, id % 3 = 0 AS a, CASE WHEN id % 5 > 0 THEN 'v' || id END AS b, CAST(id / 4 AS DECIMAL(12, 3)) AS c, array(id, NULL) AS d, named_struct('n', id) AS e FROM range(9000);

--- names of columns that must be quoted
SELECT * FROM odd_names;

--- days and times that are written by their pattern
SELECT id, date_format(day, 'dd.MM.yyyy E') AS a, date_format(shown, 'HH:mm:ss.SSSSSS D') AS b, to_timestamp('28.02.2026 07:08', 'dd.MM.yyyy HH:mm') AS c, CAST(played AS STRING) AS d, CAST(day AS STRING) AS e, unix_millis(played) AS f FROM matches;

--- more than four digits of a year
SELECT date_add(DATE '9999-12-31', 1) AS a, 1 AS id;

--- two hundred columns
SELECT 1 AS c1, 2 AS c2, 3 AS c3, 4 AS c4, 5 AS c5, 6 AS c6, 7 AS c7, 8 AS c8, 9 AS c9, 10 AS c10, 11 AS c11, 12 AS c12, 13 AS c13, 14 AS c14, 15 AS c15, 16 AS c16, 17 AS c17, 18 AS c18, 19 AS c19, 20 AS c20, 21 AS c21, 22 AS c22, 23 AS c23,
    24 AS c24, 25 AS c25, 26 AS c26, 27 AS c27, 28 AS c28, TIMESTAMP '2026-01-01 00:00:00Z' AS c29, array(1) AS c30;
