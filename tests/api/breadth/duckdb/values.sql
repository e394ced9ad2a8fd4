-- A value of each type, at both of its ends and NULL. breadth.rs says how this is read.

--- whole numbers at their ends
SELECT (-128)::TINYINT AS a, 127::TINYINT AS b, (-32768)::SMALLINT AS c, 32767::SMALLINT AS d, (-2147483648)::INTEGER AS e, 2147483647 AS f, (-9223372036854775808)::BIGINT AS g,
    9223372036854775807 AS h;

--- whole numbers without a sign
SELECT 0::UTINYINT AS a, 255::UTINYINT AS b, 65535::USMALLINT AS c, 4294967295::UINTEGER AS d, 18446744073709551615::UBIGINT AS e, 0::UBIGINT AS f, 9223372036854775808::UBIGINT AS g;

--- whole numbers of 128 bits
SELECT '-170141183460469231731687303715884105728'::HUGEINT AS a, 170141183460469231731687303715884105727::HUGEINT AS b, '340282366920938463463374607431768211455'::UHUGEINT AS c, 0::HUGEINT AS d,
    (-1)::HUGEINT AS e, 0::UHUGEINT AS f, 9223372036854775808 AS g;

--- numbers without an end
SELECT 1 AS id, 123456789012345678901234567890::BIGNUM AS a, (-255)::BIGNUM AS b, 0::BIGNUM AS c, ('9' || repeat('0', 600))::BIGNUM AS d, ('-1' || repeat('234567890', 60))::BIGNUM AS e, 256::BIGNUM AS f,
    (-256)::BIGNUM AS g, 65536::BIGNUM AS h;

--- truth, and what is unknown
SELECT n AS id, n > 2 AS a, nullif(n > 2, false) AS b, (n = 2) IS TRUE AS c, NULL::BOOLEAN IS UNKNOWN AS d, 'f'::BOOLEAN AS e FROM (VALUES (1), (2), (3)) AS v (n);

--- exact numbers keep their scale
SELECT 1.10 AS a, 1.00::DECIMAL(5, 3) AS b, 0.000001 AS c, -0.5::DECIMAL(4, 1) AS d, 12345678901234567890.9876543210::DECIMAL(38, 10) AS e, 100::DECIMAL(5, 0) AS f, 007.50 AS g,
    0::DECIMAL(18, 18) AS h, -0.000000001::DECIMAL(9, 9) AS i;

--- exact numbers at their ends
SELECT '9999999999999999999999999999.9999999999'::DECIMAL(38, 10) AS a, '-9999999999999999999999999999.9999999999'::DECIMAL(38, 10) AS b, '99999999999999999999999999999999999999'::DECIMAL(38, 0) AS c,
    '-0.00000000000000000000000000000000000001'::DECIMAL(38, 38) AS d, 99.99::DECIMAL(4, 2) AS e, 9999999.99::DECIMAL(9, 2) AS f, 999999999999999999::DECIMAL(18, 0) AS g,
    0.0000000001::DECIMAL(38, 10) AS h;

--- exact numbers in expressions
SELECT id, pay * 3 AS a, pay / 3 AS b, pay + 0.001 AS c, sum(pay) OVER () AS d, avg(pay) OVER () AS e, pay % 7 AS f, -pay AS g, round(pay, 1) AS h, pay::INTEGER AS i FROM staff;

--- double precision at its ends
SELECT 5e-324::DOUBLE AS a, 2.2250738585072014e-308::DOUBLE AS b, 1.7976931348623157e308::DOUBLE AS c, -1.7976931348623157e308::DOUBLE AS d, 9007199254740993::DOUBLE AS e,
    0.1::DOUBLE + 0.2::DOUBLE AS f, 1e15::DOUBLE AS g, 1e16::DOUBLE AS h, 1e17::DOUBLE AS i, 123456789.125::DOUBLE AS j, 1e-5::DOUBLE AS k, '-0'::DOUBLE AS l, 1 / 3 AS m, 100::DOUBLE AS n, 1e22::DOUBLE AS o;

--- double precision that is no number
SELECT 'NaN'::DOUBLE AS a, 'Infinity'::DOUBLE AS b, '-Infinity'::DOUBLE AS c, 'NaN'::FLOAT AS d, 'inf'::FLOAT AS e, '-inf'::FLOAT AS f, '-nan'::DOUBLE AS g;

--- floats have their own digits
SELECT 0.1::FLOAT AS a, 1.1::FLOAT AS b, (1 / 3)::FLOAT AS c, 16777216::FLOAT AS d, 3.14159274::FLOAT AS e, 1e-10::FLOAT AS f, 123.456::FLOAT AS g, '-0'::FLOAT AS h, 1.17549435e-38::FLOAT AS i,
    1e-45::FLOAT AS j, 123456789::FLOAT AS k, 3.4028235e38::FLOAT AS l, -1e10::FLOAT AS m, 33554434::FLOAT AS n;

--- floats in expressions
SELECT id, ratio, ratio * 2 AS twice, ratio::DOUBLE AS wide, ratio::DECIMAL(12, 6) AS exact, ratio::VARCHAR AS told, weight FROM matches;

--- texts that a table of commas finds hard
SELECT id, v, length(v) AS n, strlen(v) AS bytes, v IS NULL AS missing FROM texts;

--- ways to write a text
SELECT 'it''s' AS a, '' AS b, '\n stays' AS c, chr(9) || chr(10) AS d, repeat('é', 10000) AS e, 'A' COLLATE NOCASE AS f, 'x'::VARCHAR(1) AS g, 'y'::CHAR(3) AS h, ' ' AS i;

--- texts with a collation that are computed beforehand
SELECT 'a' || 'B' COLLATE NOCASE AS a, upper('c' COLLATE NOCASE) AS b;

--- bytes
SELECT ''::BLOB AS a, '\x00\xFF'::BLOB AS b, 'abc\x5Cdef'::BLOB AS c, from_base64('AAECAwQ=') AS d, unhex('00017fff') AS e, encode('größe') AS f, octet_length('\x01\x02'::BLOB) AS n, repeat('\xAA'::BLOB, 100) AS g;

--- bits
SELECT '1'::BIT AS a, '0'::BIT AS b, '101'::BIT AS c, '00000000111111111'::BIT AS d, '01010101'::BIT AS e, bitstring('11', 9) AS f, ~'0011'::BIT AS g, bit_count('0111'::BIT) AS n, 5::TINYINT::BIT AS h;

--- days, also before the first and after the last year of four digits
SELECT DATE '2026-02-28' AS a, DATE '0001-01-01' AS b, DATE '0001-12-31 (BC)' AS c, DATE '0044-03-15 (BC)' AS d, DATE '4713-01-01 (BC)' AS e, DATE '9999-12-31' AS f, DATE '10000-01-01' AS g,
    DATE '99999-12-31' AS h, DATE 'epoch' AS i, DATE '2000-02-29' AS j;

--- moments, also before the first and after the last year of four digits
SELECT TIMESTAMPTZ '2026-01-01 00:00:00.000001+14' AS a, TIMESTAMPTZ '0044-03-15 (BC) 12:00:00+00' AS b, TIMESTAMPTZ '10000-01-01 00:00:00+00' AS c, TIMESTAMPTZ '99999-12-31 23:59:59.999999+00' AS d,
    TIMESTAMPTZ 'epoch' AS e, TIMESTAMPTZ '1969-12-31 23:59:59.5+00' AS f, TIMESTAMPTZ '2026-01-01 00:00:00-00:30' AS g, TIMESTAMP '2026-03-29 02:30:00' AT TIME ZONE 'Europe/Berlin' AS h,
    TIMESTAMPTZ '2026-01-01 10:00:00 Asia/Tokyo' AS i;

--- what a clock shows without a zone
SELECT TIMESTAMP '2026-02-28 23:59:59.999999' AS a, TIMESTAMP '0001-01-01 00:00:00' AS b, TIMESTAMP '0044-03-15 (BC) 12:00:00' AS c, TIMESTAMP '10000-01-01 00:00:00.5' AS d, TIMESTAMP 'epoch' AS e,
    TIMESTAMP '1582-10-10 01:02:03' AS f, TIMESTAMPTZ '2026-07-01 12:00:00+00' AT TIME ZONE 'Europe/Berlin' AS g, TIMESTAMP '1969-12-31 23:59:59.999999' AS h;

--- clocks of seconds and milliseconds
SELECT TIMESTAMP_S '2026-02-28 23:59:59' AS a, TIMESTAMP_S '1969-12-31 23:59:59' AS b, TIMESTAMP_MS '2026-02-28 23:59:59.999' AS c, TIMESTAMP_MS '0001-01-01 00:00:00.001' AS d,
    TIMESTAMP_S '9999-12-31 23:59:59' AS e, TIMESTAMP_MS '1969-12-31 23:59:59.999' AS f, '2026-01-01 00:00:00.6'::TIMESTAMP_S AS g;

--- clocks of nanoseconds, whose digits stay
SELECT 1 AS id, TIMESTAMP_NS '2026-02-28 23:59:59.123456789' AS a, TIMESTAMP_NS '1969-12-31 23:59:59.999999999' AS b, TIMESTAMP_NS '2026-01-01 00:00:00' AS c, TIMESTAMP_NS '2262-04-11 23:47:16.854775806' AS d,
    TIMESTAMP_NS '1677-09-22 00:00:00' AS e, TIME_NS '01:02:03.000000001' AS f, TIME_NS '23:59:59.5' AS g, TIME_NS '00:00:00' AS h;

--- times of day
SELECT TIME '00:00:00' AS a, TIME '23:59:59.999999' AS b, TIME '24:00:00' AS c, TIME '12:34:56.7' AS d, '2026-01-01 10:11:12'::TIMESTAMP::TIME AS e;

--- times of day with how far their zone is
SELECT 1 AS id, TIMETZ '01:02:03+00' AS a, TIMETZ '01:02:03.456789+05:30' AS b, TIMETZ '23:59:59-15:59:59' AS c, TIMETZ '24:00:00+15:59' AS d, TIMETZ '00:00:00-00:30' AS e;

--- spans of time
SELECT 1 AS id, INTERVAL '1 year 2 months -3 days 04:05:06.7' AS a, INTERVAL '0 days' AS b, INTERVAL '-1 microsecond' AS c, INTERVAL '100000 hours' AS d, INTERVAL '-14 months 1 day -2 hours' AS e,
    to_months(-2147483647) AS f, to_days(2147483647) AS g, to_microseconds(9223372036854775807) AS h, to_microseconds(-9223372036854775807) AS i, INTERVAL '1 month -1 day' AS j, age(DATE '2026-03-01', DATE '2024-02-29') AS k;

--- keys
SELECT '0f3c5a70-1b2d-4e6f-8a9b-c0d1e2f30415'::UUID AS a, '00000000-0000-0000-0000-000000000000'::UUID AS b, 'ffffffff-ffff-ffff-ffff-ffffffffffff'::UUID AS c, '{C4CA4238A0B923820DCC509A6F75849B}'::UUID AS d,
    '80000000-0000-0000-0000-000000000000'::UUID AS e;

--- words of an enumeration
SELECT id, side, side::VARCHAR AS told, enum_code(side) AS place, side < 'neutral' AS a, 'it''s, "there"'::side AS b, NULL::side AS c FROM matches;

--- documents
SELECT '{"a": [1, 2.50, null, "é \u00e9"], "b": {}}'::JSON AS a, '[]'::JSON AS b, 'null'::JSON AS c, '"text"'::JSON AS d, '12345678901234567890.10'::JSON AS e, 'true'::JSON AS f, '{"a":1,"a":2}'::JSON AS g, 1 AS id;

--- documents out of rows
SELECT id, notes, notes -> 'list' AS list, notes ->> '$.deep.er' AS est, (notes ->> 'n')::INTEGER AS n, json_array_length(notes, '$.list') AS length, to_json(tags) AS tags FROM matches;

--- lists
SELECT [1, NULL, 3] AS a, []::INTEGER[] AS b, [[1], [], NULL, [2, 3]] AS c, ['a', NULL, 'b"c\d'] AS d, [1.50, 2.25] AS e, [true, false, NULL] AS f, [DATE '2026-02-28'] AS g, ['\xAA\x00'::BLOB] AS h,
    [0.1::FLOAT, 1e20::FLOAT, 100::FLOAT] AS i, [0.1::DOUBLE, 1e300::DOUBLE, -0.0::DOUBLE] AS j, 1 AS id;

--- lists of what JSON has no number for
SELECT ['nan'::DOUBLE, 'inf'::DOUBLE, '-inf'::DOUBLE] AS a, ['inf'::FLOAT] AS b, [18446744073709551615::UBIGINT] AS c, ['-170141183460469231731687303715884105728'::HUGEINT] AS d,
    [123456789012345678901234567890::BIGNUM] AS e, [0.000001::DECIMAL(38, 10)] AS f, 1 AS id;

--- lists of times
SELECT [TIMESTAMPTZ '2026-02-28 01:02:03+01'] AS a, [TIMESTAMP '2026-02-28 01:02:03.5'] AS b, [TIME '24:00:00'] AS c, [TIMETZ '01:02:03+05:30'] AS d, [TIMESTAMP_NS '2026-02-28 01:02:03.000000001'] AS e,
    [INTERVAL '1 day'] AS f, [TIMESTAMP_S '2026-02-28 01:02:03'] AS g, [TIMESTAMP_MS '2026-02-28 01:02:03.004'] AS h, [DATE '0044-03-15 (BC)', DATE '10000-01-01'] AS i, 1 AS id;

--- lists of keys, bits, words and documents
SELECT ['0f3c5a70-1b2d-4e6f-8a9b-c0d1e2f30415'::UUID] AS a, ['101'::BIT, NULL] AS b, ['home'::side, 'it''s, "there"'::side] AS c, ['{"a": 1.50}'::JSON, NULL, '"x"'::JSON] AS d, 1 AS id;

--- arrays of a fixed length
SELECT [1, 2]::INTEGER[2] AS a, [[1, 2], [3, 4]]::INTEGER[2][2] AS b, ['x', NULL]::VARCHAR[2] AS c, NULL::INTEGER[2] AS d, [0.5, 1.5]::FLOAT[2] AS e, array_distance([1, 2]::FLOAT[2], [4, 6]::FLOAT[2]) AS f;

--- structs
SELECT {'a': 1, 'b': NULL, 'c': [{'d': 'x'}]} AS a, {'Name with "quotes"': 1.50, 'größe': DATE '2026-01-01'} AS b, struct_pack(x => 1, y => 'z') AS c, NULL::STRUCT(a INTEGER) AS d, {'a': {'b': {'c': NULL::INTEGER}}} AS e, 1 AS id;

--- structs out of rows
SELECT id, seat, seat.city AS city, seat['zip'] AS zip, seat.spot[1] AS x, struct_extract(seat, 'city') AS again FROM matches;

--- maps
SELECT MAP {'k': 1.50, 'l': NULL} AS a, MAP {1: 'x', 2: 'y'} AS b, MAP {}::MAP(VARCHAR, INTEGER) AS c, MAP {DATE '2026-01-01': [1]} AS d, MAP {1.50: true} AS e, MAP {'home'::side: {'a': 1}} AS f,
    MAP {true: 1} AS g, MAP {TIMESTAMP '2026-01-01 00:00:00': 1} AS h, MAP {'a "b"': NULL::INTEGER} AS i, 1 AS id;

--- maps that are asked
SELECT id, map_keys(m) AS keys, map_values(m) AS vals, m['a'] AS a, cardinality(m) AS n, map_entries(m) AS entries FROM (SELECT 1 AS id, MAP {'a': 1, 'b': 2} AS m UNION ALL SELECT 2, MAP {}) AS s;

--- unions
SELECT union_value(k => 1)::UNION(s VARCHAR, k INTEGER) AS a, 'x'::UNION(s VARCHAR, k INTEGER) AS b, [1::UNION(s VARCHAR, k INTEGER), 'y'::UNION(s VARCHAR, k INTEGER)] AS c, NULL::UNION(a INTEGER) AS d,
    union_tag('x'::UNION(s VARCHAR, k INTEGER))::VARCHAR AS e;

--- a NULL of each type
SELECT 1 AS id, NULL::BOOLEAN AS a, NULL::TINYINT AS b, NULL::INTEGER AS c, NULL::HUGEINT AS d, NULL::UHUGEINT AS e, NULL::FLOAT AS f, NULL::DOUBLE AS g, NULL::DECIMAL(38, 10) AS h, NULL::BIGNUM AS i,
    NULL::VARCHAR AS j, NULL::BLOB AS k, NULL::BIT AS l, NULL::DATE AS m, NULL::TIME AS n, NULL::TIMETZ AS o, NULL::TIMESTAMP AS p, NULL::TIMESTAMP_S AS q, NULL::TIMESTAMP_MS AS r, NULL::TIMESTAMP_NS AS s,
    NULL::TIMESTAMPTZ AS t, NULL::INTERVAL AS u, NULL::UUID AS v, NULL::side AS w, NULL::INTEGER[] AS x, NULL::STRUCT(a INTEGER) AS y, NULL::MAP(VARCHAR, INTEGER) AS z, NULL::UNION(a INTEGER) AS aa,
    NULL::INTEGER[2] AS ab, NULL::JSON AS ac, NULL AS ad, NULL::TIME_NS AS ae;

--- NULL beside values of each type
SELECT id, goals, rival, fee, weight, key, tags, notes, seat, is_final FROM matches;

--- times beside rows
SELECT id, played, shown, day, kick_off, played::DATE AS on_day, shown - INTERVAL '1 month' AS earlier, day - DATE '2026-01-01' AS days, played - TIMESTAMPTZ '2026-01-01 00:00:00+00' AS since FROM matches;

--- no rows of any type
SELECT * FROM empty;

--- no rows of a statement
SELECT id, team, [id] AS list, {'a': id} AS struct FROM matches WHERE false;

--- rows of several chunks
SELECT n AS id, n % 3 = 0 AS a, CASE WHEN n % 5 > 0 THEN 'v' || n END AS b, (n / 4)::DECIMAL(12, 3) AS c, [n, NULL] AS d, {'n': n} AS e, 'home'::side AS f FROM range(9000) AS r (n);

--- names of columns that must be quoted
SELECT * FROM "Odd names";

--- days and times that are written by their pattern
SELECT id, strftime(day, '%d.%m.%Y %a') AS a, strftime(shown, '%H:%M:%S.%f %j') AS b, strptime('28.02.2026 07:08', '%d.%m.%Y %H:%M') AS c, played::VARCHAR AS d, day::VARCHAR AS e, epoch_ms(shown) AS f FROM matches;

--- geometry as bytes
SELECT 1 AS id, hex('\x00\x01'::BLOB) AS a, 'POINT(1 2)'::GEOMETRY::VARCHAR AS b;
