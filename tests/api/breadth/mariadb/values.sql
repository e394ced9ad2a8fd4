-- A value of each type, at both of its ends and NULL. breadth.rs says how this is read.

--- all columns of the table of numbers
SELECT * FROM numbers;

--- whole numbers at their ends
SELECT id, tiny, utiny, flag, small, usmall, medium, umedium, i, u, filled, big, ubig FROM numbers;

--- exact numbers keep every digit and their scale
SELECT id, exact, whole, part, uexact, zexact FROM numbers;

--- floats have their shortest digits
SELECT id, f, d, fixed, ffixed FROM numbers;

--- floats in expressions
SELECT id, f * 2 AS a, f + 0e0 AS b, CAST(f AS DOUBLE) AS c, -d AS e, d / 3 AS g, CAST(d AS CHAR) AS h, f = 0.1 AS k, CAST(0.1 AS FLOAT) AS l FROM numbers WHERE id > 3;

--- bits are numbers, and one bit is yes or no
SELECT id, bit1, bit9, bit63, bit64, bit9 + 0 AS a, bit1 = 1 AS b, BIN(bit9) AS c, HEX(bit64) AS d FROM numbers;

--- years
SELECT id, y, y + 1 AS next, CAST(y AS CHAR) AS told FROM numbers;

--- a NULL of each type in a table
SELECT * FROM numbers WHERE id = 3;

--- a NULL of each type of an expression
-- mariadb: MySQL has no type INET6
SELECT 1 AS id, NULL AS a, CAST(NULL AS SIGNED) AS b, CAST(NULL AS UNSIGNED) AS c, CAST(NULL AS DECIMAL(10,2)) AS d, CAST(NULL AS DOUBLE) AS e, CAST(NULL AS FLOAT) AS f,
    CAST(NULL AS CHAR) AS g, CAST(NULL AS BINARY) AS h, CAST(NULL AS DATE) AS i, CAST(NULL AS TIME) AS j, CAST(NULL AS DATETIME(6)) AS k, CAST(NULL AS INET6) AS l,
    CAST(NULL AS UUID) AS m, NULL + 1 AS n, NULL AND TRUE AS o;

--- literals of numbers
SELECT 1 AS a, -1 AS b, 2147483648 AS c, 9223372036854775807 AS d, -9223372036854775808 AS e, 9223372036854775808 AS f, 18446744073709551615 AS g,
    18446744073709551616 AS h, 1.10 AS i, -0.0 AS j, .5 AS k, 1. AS l, 1e3 AS m, 1.5e-7 AS n, 007.50 AS o, 0x41 + 0 AS p, 0b101 + 0 AS q, x'ff' + 0 AS r, 1e-320 AS s,
    1.7976931348623157e308 AS t, 123456789012345678901234567890.123456789 AS u;

--- a number with more digits than a decimal has
-- mariadb: MySQL has more digits of it in a statement that is not prepared
SELECT 1 AS id, 12345678901234567890123456789012345678901234567890123456789012345678901234567890e0 AS a, 0.00000000000000000000000000000000000001 AS b;

--- quotients have the digits that the server gives them
SELECT seq AS id, 1 / seq AS a, 10.0 / seq AS b, seq % 3 AS c, -7 DIV CAST(seq AS SIGNED) AS d, MOD(-7, CAST(seq AS SIGNED)) AS e, 7.5 DIV seq AS f, SQRT(seq) AS g, EXP(seq) AS h, LN(seq) AS i,
    POW(2.5, seq) AS j, 1e0 / seq AS k FROM seq_1_to_9;

--- double precision
SELECT 1 AS id, 0.1e0 + 0.2e0 AS a, 1e15 AS b, 1e16 AS c, 123456789.125e0 AS d, 1e-5 AS e, 1e-4 AS f, 1e0 / 3 AS g, 100e0 AS h, 1e22 AS i, 9007199254740993e0 AS j,
    PI() AS k, 1e100 AS l, -1e-100 AS m;

--- exact numbers that become larger
SELECT SUM(exact) AS a, SUM(whole) AS b, SUM(part) AS c, SUM(ubig) AS d, SUM(big) AS e, AVG(ubig) AS f, SUM(u) AS g, MAX(ubig) AS h FROM numbers WHERE id > 2;

--- days, and those that no calendar has
SELECT id, d, d IS NULL AS missing, YEAR(d) AS y, MONTH(d) AS m, DAYOFMONTH(d) AS n, CAST(d AS CHAR) AS told FROM times;

--- spans of time
SELECT id, t, t3, t6, TIME_TO_SEC(t) AS s, HOUR(t) AS h, t < 0 AS negative, CAST(t6 AS CHAR) AS told FROM times;

--- spans of time that are computed
SELECT id, TIMEDIFF(t, '01:00:00') AS a, ADDTIME(t3, '00:00:00.5') AS b, SEC_TO_TIME(id * 100000) AS c, MAKETIME(id * 100, 59, 59) AS e, MAKETIME(-1, 0, 0.25) AS f,
    TIME(dt6) AS g, CAST('10:11:12.1234567' AS TIME(6)) AS h, -t AS i FROM times;

--- clocks without a zone
SELECT id, dt, dt3, dt6, dt IS NULL AS missing FROM times;

--- moments
SELECT id, s, s6, UNIX_TIMESTAMP(s) AS a, UNIX_TIMESTAMP(s6) AS b, CAST(s6 AS CHAR) AS c, DATE(s) AS d, CAST(s AS DATETIME) AS e FROM times;

--- all columns of the table of times
SELECT * FROM times;

--- literals of times
SELECT DATE '2026-02-28' AS a, TIME '10:11:12' AS b, TIME '-10:11:12.5' AS c, TIMESTAMP '2026-02-28 10:11:12' AS d, TIMESTAMP '2026-02-28 10:11:12.000001' AS e,
    {d '2024-02-29'} AS f, {t '23:59:59'} AS g, {ts '2024-02-29 23:59:59.25'} AS h, DATE '9999-12-31' AS i;

--- times that become numbers and texts
SELECT id, dt + 0 AS a, t + 0 AS b, d + 0 AS c, dt6 + 0 AS e, CONCAT(dt6, '') AS f, CONCAT(t3, '|', d) AS g FROM times;

--- texts that a table of commas finds hard
SELECT id, v, CHAR_LENGTH(v) AS n, LENGTH(v) AS bytes, v IS NULL AS missing FROM texts;

--- texts of all character sets
SELECT id, v, c, latin, narrow, wide, t, exact_t FROM texts;

--- words of a list
SELECT id, e, s, e + 0 AS place, s + 0 AS bits, FIND_IN_SET('y', s) AS found, e = 'a' AS is_a FROM texts;

--- bytes
SELECT id, raw, padded, b, HEX(raw) AS a, LENGTH(padded) AS c, CAST(v AS BINARY) AS d FROM texts;

--- documents
-- mariadb: MySQL has no JSON_COMPACT
SELECT id, j, JSON_VALID(j) AS a, JSON_TYPE(j) AS b, JSON_LENGTH(j) AS c, JSON_COMPACT(j) AS d FROM texts;

--- keys and addresses
SELECT id, code, net, old_net, CAST(code AS CHAR) AS a, HEX(CAST(net AS BINARY(16))) AS b, code > '123e4567-e89b-12d3-a456-426614174000' AS c FROM texts;

--- places
SELECT id, place, ST_AsText(place) AS a, ST_X(place) AS b, ST_AsGeoJSON(place) AS c FROM texts;

--- all columns of the table of texts
SELECT * FROM texts;

--- ways to write a text
SELECT 1 AS id, 'it''s' AS a, "say \"hi\"" AS b, 'tab\there\\ \'q\' \% \_ \Z' AS c, N'n' AS d, _utf8mb4'größe' AS e, 'a' 'b' "c" AS f, x'41' AS g, 0x4142 AS h, b'1000001' AS i,
    '' AS j, _latin1 x'e9' AS k, CHAR(77, 121 USING utf8mb4) AS l;

--- a text with its end in the middle, which the client shows as a blank
-- answers {"id": 1, "v": "a\u0000b", "n": 3}
SELECT 1 AS id, 'a\0b' AS v, CHAR_LENGTH('a\0b') AS n;

--- truth, and what is unknown
SELECT seq AS id, TRUE AS a, FALSE AS b, seq > 2 AS c, NULLIF(seq > 2, 0) AS d, (seq = 2) IS TRUE AS e, NULL IS UNKNOWN AS f, NOT seq AS g, seq <=> NULL AS h FROM seq_1_to_3;

--- a long text
SELECT 1 AS id, REPEAT('é', 10000) AS a, REPEAT('ab', 100000) AS b, LENGTH(REPEAT('x', 1000000)) AS c;

--- casts
-- mariadb: MySQL has no type INET6
SELECT 1 AS id, CAST(3.7 AS SIGNED) AS a, CAST('12abc' AS SIGNED) AS b, CAST('1e3' AS DOUBLE) AS c, CAST(1 AS CHAR) AS d, CAST('1.50' AS DECIMAL(10,4)) AS e,
    CAST(-1 AS UNSIGNED) AS f, CAST(1e300 AS SIGNED) AS g, CAST(0.1 AS CHAR) AS h, CAST('x' AS DECIMAL) AS i, CAST('2026-02-28' AS DATE) AS j, CAST('2026-02-30' AS DATE) AS k,
    CAST(20260228101112 AS DATETIME) AS l, CAST('ab' AS BINARY(4)) AS m, CAST('größe' AS CHAR(3)) AS n, CAST(99.999 AS DECIMAL(4,2)) AS o, CAST('::1' AS INET6) AS p,
    CONVERT('x', DATETIME) AS q, CONVERT('größe' USING latin1) AS r, CAST('no key' AS UUID) AS t;

--- NULL is what a division by zero answers
SELECT 1 AS id, 1 / 0 AS a, 1 DIV 0 AS b, 1 % 0 AS c, 0e0 / 0 AS d, LN(0) AS e, SQRT(-1) AS f, LOG(1, 5) AS g, ACOS(2) AS h;

--- names that must be quoted
SELECT `Id`, `a, b`, `say "hi"`, `größe`, `select`, `it``s`, `<a&b>`, `Id` + 1 AS `weiß nicht`, 1 AS 'in quotes' FROM `Odd names`;

--- generated and invisible columns
SELECT id, n, twice, thrice, hidden, twice + thrice AS total FROM made;

--- all that is visible
SELECT * FROM made;

--- no row of anything
SELECT * FROM vacant;
