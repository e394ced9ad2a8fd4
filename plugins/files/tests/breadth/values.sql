Values and functions without a table: each statement with the rows that it answers, a line each, `|` between values and `~` for NULL.

--- whole numbers are divided as whole numbers
-- = 3|-3|-3|0
SELECT 10 / 3 AS a, -7 / 2 AS b, 7 / -2 AS c, 0 / 5 AS d

--- what is left of a division has the sign of what is divided
-- = 1|-1|1|1.5
SELECT 7 % 3 AS a, -7 % 3 AS b, 7 % -3 AS c, 7.5 % 2 AS d

--- decimals are added with all their digits
-- = 3.75|0.3|0.00|-0.01
SELECT 1.5 + 2.25 AS a, 0.1 + 0.2 AS b, 1.00 - 1 AS c, 19.99 - 20.00 AS d

--- decimals are multiplied with all their digits
-- = 3.375|-0.01|7.00
SELECT 1.5 * 2.25 AS a, -0.1 * 0.1 AS b, 100 * 0.07 AS c

--- decimals are divided to ten digits, the last one rounded
-- = 0.6666666667|0.3333333333|2.5000000000|-0.6666666667
SELECT 2.0 / 3 AS a, 1 / 3.0 AS b, 10.00 / 4 AS c, -2.0 / 3 AS d

--- decimals have all the digits that are written
-- = 12345678901234567890.123456789|0.00000000000000000001
SELECT 12345678901234567890.123456789 AS a, 0.00000000000000000001 AS b

--- a large number is not a float
-- = 9223372036854775807|-9223372036854775808|18446744073709551615
SELECT 9223372036854775807 AS a, -9223372036854775808 AS b, 18446744073709551615 AS c

--- numbers are compared by their value
-- = true|true|true|false
SELECT 1 = 1.0 AS a, 1.10 = 1.1 AS b, 2 > 1.99 AS c, 1.5 <> 1.50 AS d

--- beside a number a text is one
-- = true|true|true
SELECT 1 = '1' AS a, 2 < '10' AS b, '9' < 10 AS c

--- texts are compared sign by sign
-- = true|true|true|true|false
SELECT 'B' < 'a' AS a, 'a' < 'ab' AS b, '10' < '9' AS c, 'é' > 'z' AS d, 'a' = 'a ' AS e

--- NULL is not known
-- = ~|~|true|~|false|true
SELECT NULL = NULL AS a, NULL <> 1 AS b, NULL IS NULL AS c, NOT NULL AS d, NULL AND false AS e, NULL OR true AS f

--- NULL in a list
-- = true|~|~|false
SELECT 1 IN (1, NULL) AS a, 2 IN (1, NULL) AS b, 2 NOT IN (1, NULL) AS c, 1 NOT IN (1, NULL) AS d

--- what is distinct
-- = false|true|true
SELECT NULL IS DISTINCT FROM NULL AS a, 1 IS DISTINCT FROM NULL AS b, 1 IS NOT DISTINCT FROM 1 AS c

--- what is distinct ends before AND and OR
-- = false|true|true|true|true
SELECT true IS DISTINCT FROM true AND false AS a, true IS NOT DISTINCT FROM false OR true AS b, NOT false IS DISTINCT FROM false OR true AS c, false AND true IS DISTINCT FROM false OR true AS d, 1 IS DISTINCT FROM 2 AND 3 IS NOT DISTINCT FROM 3 AND 4 > 3 AS e

--- between has its ends
-- = true|true|true|false|~
SELECT 1 BETWEEN 1 AND 2 AS a, 2 BETWEEN 1 AND 2 AS b, 3 NOT BETWEEN 1 AND 2 AS c, 2 BETWEEN 3 AND 1 AS d, NULL BETWEEN 1 AND 2 AS e

--- case takes the first that holds
-- = b|~|2
SELECT CASE WHEN 1 > 2 THEN 'a' WHEN 2 > 1 THEN 'b' ELSE 'c' END AS a, CASE 3 WHEN 1 THEN 'x' END AS b, CASE WHEN NULL THEN 1 ELSE 2 END AS c

--- coalesce and nullif
-- = 3|~|1|3|1
SELECT coalesce(NULL, NULL, 3) AS a, nullif(1, 1) AS b, nullif(1, 2) AS c, greatest(1, NULL, 3) AS d, least(2, NULL, 1) AS e

--- casts to whole numbers cut
-- = 1|-1|42|1
SELECT CAST(1.7 AS bigint) AS a, CAST(-1.7 AS bigint) AS b, CAST('42' AS int) AS c, CAST(true AS int) AS d

--- casts to decimals round
-- = 1.01|1.01|-1.01|1.000
SELECT CAST(1.005 AS decimal(10, 2)) AS a, CAST('1.005' AS decimal(10, 2)) AS b, CAST(-1.005 AS decimal(10, 2)) AS c, CAST(1 AS decimal(5, 3)) AS d

--- casts to texts
-- = 1.50|-5|true|2026-01-31
SELECT CAST(1.50 AS text) AS a, CAST(-5 AS text) AS b, CAST(true AS text) AS c, CAST(DATE '2026-01-31' AS text) AS d

--- casts that fail are NULL where they are tried
-- = ~|~|1.5
SELECT TRY_CAST('x' AS int) AS a, TRY_CAST('2026-02-30' AS date) AS b, TRY_CAST('1.5' AS decimal(3, 1)) AS c

--- casts to booleans
-- = true|false|false|true
SELECT CAST('true' AS boolean) AS a, CAST('f' AS boolean) AS b, CAST(0 AS boolean) AS c, CAST('1' AS boolean) AS d

--- floats from texts
-- = 0.1|100000000000000000000|-0.0015|NaN|-inf
SELECT CAST('0.1' AS double) AS a, CAST('1e20' AS double) AS b, CAST('-1.5e-3' AS double) AS c, CAST('NaN' AS double) AS d, CAST('-inf' AS double) AS e

--- floats are computed as floats
-- = 0.30000000000000004|0.3333333333333333|inf
SELECT CAST('0.1' AS double) + CAST('0.2' AS double) AS a, CAST('1' AS double) / 3 AS b, CAST(1 AS double) / CAST(0 AS double) AS c

--- rounding
-- = 3|-3|1234.57|1200|1.5
SELECT round(2.5) AS a, round(-2.5) AS b, round(1234.567, 2) AS c, round(1234.567, -2) AS d, round(1.45, 1) AS e

--- rounding of floats
-- = 2|0|1.3
SELECT round(CAST('2.5' AS double)) AS a, round(CAST('-0.4' AS double)) AS b, round(CAST('1.255' AS double), 1) AS c

--- halves of floats are rounded to the even one
-- = 0|2|2|-2|4
SELECT round(CAST('0.5' AS double)) AS a, round(CAST('1.5' AS double)) AS b, round(CAST('2.5' AS double)) AS c, round(CAST('-2.5' AS double)) AS d, round(CAST('3.5' AS real)) AS e

--- small rates have their digits
-- = 0.0000370000|0.0000370000|0.5000000000
SELECT 1.0 * 37 / 1000000 AS a, CAST(37 AS decimal(10, 0)) / 1000000 AS b, 2.5 / 5.0 AS c

--- what is divided twice, and quotients that are multiplied
-- = 0.1666666667|0.25000000000000000000
SELECT 1.0 / 2 / 3 AS a, (1.0 / 2) * (1.0 / 2) AS b

--- nothing is divided, and by nothing
-- = ~|~|~
SELECT CAST(NULL AS decimal(10, 2)) / 3 AS a, 1.5 / CAST(NULL AS bigint) AS b, 1.5 / nullif(0, 0) AS c

--- down, up and cut
-- = 1.0|-2.0|2.0|-1.0|-1
SELECT floor(1.7) AS a, floor(-1.2) AS b, ceil(1.2) AS c, ceil(-1.7) AS d, trunc(CAST('-1.7' AS double)) AS e

--- signs
-- = 5|1.50|-1|0.5
SELECT abs(-5) AS a, abs(-1.50) AS b, signum(CAST('-3' AS double)) AS c, abs(CAST('-0.5' AS double)) AS d

--- powers and roots
-- = 1024|4|3|1
SELECT power(2, 10) AS a, sqrt(CAST(16 AS double)) AS b, cbrt(CAST(27 AS double)) AS c, exp(CAST(0 AS double)) AS d

--- logarithms
-- = 0|3|3|2
SELECT ln(CAST(1 AS double)) AS a, log10(CAST(1000 AS double)) AS b, log2(CAST(8 AS double)) AS c, log(CAST(100 AS double)) AS d

--- whole numbers of a kind
-- = 6|12|3628800
SELECT gcd(12, 18) AS a, lcm(4, 6) AS b, factorial(10) AS c

--- bits
-- = 2|7|5|16|-4
SELECT 6 & 3 AS a, 6 | 3 AS b, 6 # 3 AS c, 1 << 4 AS d, -16 >> 2 AS e

--- texts are joined, and NULL with them
-- = ab|~|a1|ab|a-b
SELECT 'a' || 'b' AS a, 'a' || NULL AS b, 'a' || 1 AS c, concat('a', NULL, 'b') AS d, concat_ws('-', 'a', NULL, 'b') AS e

--- parts of a text
-- = ell|lo|h|hello|
SELECT substring('hello' FROM 2 FOR 3) AS a, substr('hello', 4) AS b, substr('hello', 0, 2) AS c, substr('hello', -1) AS d, substr('hello', 9) AS e

--- ends of a text
-- = he|hel|lo|llo|hé
SELECT left('hello', 2) AS a, left('hello', -2) AS b, right('hello', 2) AS c, right('hello', -2) AS d, left('héllo', 2) AS e

--- lengths
-- = 5|0|6|16
SELECT length('héllo') AS a, char_length('') AS b, octet_length('héllo') AS c, bit_length('ab') AS d

--- cases
-- = STRASSE|àb|Hello World
SELECT upper('straße') AS a, lower('ÀB') AS b, initcap('hello wORLD') AS c

--- places
-- = 3|0|3
SELECT position('l' IN 'hello') AS a, strpos('hello', 'z') AS b, strpos('héllo', 'llo') AS c

--- trimming
-- = a|a |xxa|a|a
SELECT trim('  a ') AS a, ltrim('  a ') AS b, rtrim('xxaxx', 'x') AS c, trim(BOTH 'x' FROM 'xxaxx') AS d, btrim('--a--', '-') AS e

--- filling
-- = 007|axy|he|ababab|bña
SELECT lpad('7', 3, '0') AS a, rpad('a', 3, 'xy') AS b, lpad('hello', 2) AS c, repeat('ab', 3) AS d, reverse('añb') AS e

--- replacing
-- = heLLo|hippo|hXXlo
SELECT replace('hello', 'l', 'L') AS a, translate('hello', 'el', 'ip') AS b, overlay('hello' PLACING 'XX' FROM 2 FOR 2) AS c

--- splitting
-- = b|c|
SELECT split_part('a,b,c', ',', 2) AS a, split_part('a,b,c', ',', -1) AS b, split_part('a', ',', 3) AS c

--- signs by number
-- = 233|é|ff
SELECT ascii('é') AS a, chr(233) AS b, to_hex(255) AS c

--- begins and ends
-- = true|true|true
SELECT starts_with('hello', 'he') AS a, ends_with('hello', 'lo') AS b, contains('hello', 'ell') AS c

--- digests
-- = 0cc175b9c0f1b6a831c399e269772661|ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb
SELECT md5('a') AS a, encode(sha256('a'), 'hex') AS b

--- encodings
-- = 68c3a9|aMOp|hi
SELECT encode('hé', 'hex') AS a, encode('hé', 'base64') AS b, CAST(decode('6869', 'hex') AS text) AS c

--- like
-- = true|false|false|true|true|false
SELECT 'hello' LIKE 'h%o' AS a, 'hello' LIKE 'h_o' AS b, 'hello' LIKE '' AS c, '' LIKE '%' AS d, 'a%' LIKE 'a\%' AS e, 'ab' LIKE 'a\%' AS f

--- like knows cases, and ilike does not
-- = false|true|true|true|~
SELECT 'Hello' LIKE 'h%' AS a, 'Hello' ILIKE 'h%' AS b, 'ÉT' ILIKE 'ét' AS c, 'a' NOT LIKE 'b' AS d, NULL LIKE 'a' AS e

--- like with other escapes
-- = true|false
SELECT 'a%b' LIKE 'a!%b' ESCAPE '!' AS a, 'axb' LIKE 'a!%b' ESCAPE '!' AS b

--- like takes a line's end for a sign
-- = true|true
SELECT E'a\nb' LIKE 'a_b' AS a, E'a\nb' LIKE 'a%' AS b

--- similar to takes the whole text
-- = false|true|false|false
SELECT 'abc' SIMILAR TO 'b' AS a, 'abc' SIMILAR TO '%(b|d)%' AS b, 'abc' SIMILAR TO 'a.c' AS c, 'abc' NOT SIMILAR TO 'abc' AS d

--- regular expressions
-- = false|true|false|true
SELECT 'abc' ~ 'B' AS a, 'abc' ~* 'B' AS b, 'abc' !~ '^a' AS c, 'abc' ~ '^a.c$' AS d

--- replacing by regular expressions
-- = baa|bbb|12-ab
SELECT regexp_replace('aaa', 'a', 'b') AS a, regexp_replace('aaa', 'a', 'b', 'g') AS b, regexp_replace('ab12', '([a-z]+)(\d+)', '\2-\1') AS c

--- counting by regular expressions
-- = 2|true
SELECT regexp_count('abcabc', 'b') AS a, regexp_like('abc', 'B', 'i') AS b

--- characters of a width
-- = hél|ab|12
SELECT CAST('héllo' AS varchar(3)) AS a, 'ab'::varchar(5) AS b, CAST(12345 AS varchar(2)) AS c

--- days are moved by days
-- = 2026-02-28|2025-02-28|2026-02-28
SELECT DATE '2026-01-31' + INTERVAL '1 month' AS a, DATE '2024-02-29' + INTERVAL '1 year' AS b, DATE '2026-03-01' - INTERVAL '1 day' AS c

--- days are counted
-- = 28|719162
SELECT DATE '2026-03-01' - DATE '2026-02-01' AS a, DATE '1970-01-01' - DATE '0001-01-01' AS b

--- a number of days later
-- = 2027-01-01|2025-12-31
SELECT DATE '2026-12-31' + 1 AS a, DATE '2026-01-01' - 1 AS b

--- moments are moved
-- = 2026-02-28T23:59:59.500000|2025-12-31T23:59:59.000000|2026-01-02T02:00:00.000000
SELECT TIMESTAMP '2026-01-31 23:59:59.5' + INTERVAL '1 month' AS a, TIMESTAMP '2026-01-01' - INTERVAL '1 second' AS b, TIMESTAMP '2026-01-01' + INTERVAL '1 day 2 hours' AS c

--- moments in a zone leave in UTC
-- = 2025-12-31T23:00:00.000000Z|2026-01-01T00:00:00.000000Z|2026-07-01T12:00:00.000000Z
SELECT TIMESTAMPTZ '2026-01-01 00:00:00+01:00' AS a, TIMESTAMPTZ '2026-01-01 00:00:00' AS b, '2026-07-01T12:00:00Z'::timestamptz AS c

--- moments are compared
-- = true|true|true
SELECT TIMESTAMP '2026-01-01' = DATE '2026-01-01' AS a, TIMESTAMPTZ '2026-01-01 01:00:00+01:00' = TIMESTAMPTZ '2026-01-01 00:00:00Z' AS b, TIMESTAMP '2026-01-01 00:00:00' < '2026-01-01 00:00:01' AS c

--- the end of times is written down
-- = 9999-12-31T23:59:59.999999|0001-01-01T00:00:00.000000|9999-12-31
SELECT TIMESTAMP '9999-12-31 23:59:59.999999' AS a, TIMESTAMP '0001-01-01 00:00:00' AS b, DATE '9999-12-31' AS c

--- moments become days and days moments
-- = 2026-01-31|2026-01-31T00:00:00.000000|1969-12-31
SELECT CAST(TIMESTAMP '2026-01-31 23:59:59' AS date) AS a, CAST(DATE '2026-01-31' AS timestamp) AS b, CAST(TIMESTAMP '1969-12-31 23:59:59' AS date) AS c

--- parts of a day
-- = 2026|11|28|4
SELECT extract(year FROM DATE '2026-11-28') AS a, extract(month FROM DATE '2026-11-28') AS b, extract(day FROM DATE '2026-11-28') AS c, extract(quarter FROM DATE '2026-11-28') AS d

--- weeks
-- = 1|53|0|7|366
SELECT extract(week FROM DATE '2026-01-01') AS a, extract(week FROM DATE '2027-01-01') AS b, extract(dow FROM DATE '2026-11-29') AS c, extract(isodow FROM DATE '2026-11-29') AS d, extract(doy FROM DATE '2024-12-31') AS e

--- parts of a moment
-- = 13|14|15.500000|15500.000
SELECT extract(hour FROM TIMESTAMP '2026-01-01 13:14:15.5') AS a, extract(minute FROM TIMESTAMP '2026-01-01 13:14:15.5') AS b, extract(second FROM TIMESTAMP '2026-01-01 13:14:15.5') AS c, extract(millisecond FROM TIMESTAMP '2026-01-01 13:14:15.5') AS d

--- seconds have their fraction
-- = 59.999999|0.000001|15.250000|59.500000|true
SELECT extract(second FROM TIMESTAMP '2026-01-01 00:00:59.999999') AS a, date_part('second', TIMESTAMP '2026-01-01 00:00:00.000001') AS b, extract(second FROM TIME '13:14:15.25') AS c, extract(second FROM TIMESTAMP '1969-12-31 23:59:59.5') AS d, extract(second FROM TIMESTAMP '2026-01-01 13:14:15.5') > 15 AS e

--- parts of spans
-- = 2.500000|2500.000|1|2|3.500000
SELECT extract(second FROM INTERVAL '1 minute 2.5 seconds') AS a, extract(millisecond FROM INTERVAL '2.5 seconds') AS b, extract(hour FROM TIMESTAMP '2026-01-03 01:02:03.5' - TIMESTAMP '2026-01-01 00:00:00') AS c, extract(minute FROM TIMESTAMP '2026-01-03 01:02:03.5' - TIMESTAMP '2026-01-01 00:00:00') AS d, extract(second FROM TIMESTAMP '2026-01-03 01:02:03.5' - TIMESTAMP '2026-01-01 00:00:00') AS e

--- seconds since 1970
-- = -0.5|86400|1767225600
SELECT extract(epoch FROM TIMESTAMP '1969-12-31 23:59:59.5') AS a, date_part('epoch', DATE '1970-01-02') AS b, to_unixtime('2026-01-01T00:00:00Z') AS c

--- moments of seconds
-- = 2026-01-01T00:00:00.000000Z|2026-01-01T00:00:00.123000Z|1969-12-31T23:59:59.999999Z
SELECT to_timestamp_seconds(1767225600) AS a, to_timestamp_millis(1767225600123) AS b, to_timestamp_micros(-1) AS c

--- moments are read by formats
-- = 2026-01-31T03:04:00.000000Z|2026-01-31T15:04:00.000000Z|2026-01-31T00:00:00.000000Z
SELECT to_timestamp('31.01.2026 03:04', '%d.%m.%Y %H:%M') AS a, to_timestamp('31.01.2026 03:04 PM', '%d.%m.%Y %I:%M %p') AS b, to_timestamp_seconds('31.01.2026', '%d.%m.%Y') AS c

--- moments are rounded down
-- = 2026-11-01T00:00:00.000000|2026-11-23T00:00:00.000000|2026-10-01T00:00:00.000000|2026-01-01T00:00:00.000000
SELECT date_trunc('month', TIMESTAMP '2026-11-28 13:14:15') AS a, date_trunc('week', TIMESTAMP '2026-11-29 00:00:00') AS b, date_trunc('quarter', TIMESTAMP '2026-11-28') AS c, date_trunc('year', TIMESTAMP '2026-11-28') AS d

--- moments are rounded down to the hour, before 1970 too
-- = 2026-11-28T13:00:00.000000|1969-12-31T23:00:00.000000|1969-12-31T00:00:00.000000
SELECT date_trunc('hour', TIMESTAMP '2026-11-28 13:14:15') AS a, date_trunc('hour', TIMESTAMP '1969-12-31 23:30:00') AS b, date_trunc('day', TIMESTAMP '1969-12-31 23:30:00') AS c

--- moments are put into bins
-- = 2026-01-01T00:15:00.000000|1969-12-31T23:00:00.000000|2026-01-01T00:05:00.000000
SELECT date_bin(INTERVAL '15 minutes', TIMESTAMP '2026-01-01 00:17:00') AS a, date_bin(INTERVAL '1 hour', TIMESTAMP '1969-12-31 23:30:00') AS b, date_bin(INTERVAL '15 minutes', TIMESTAMP '2026-01-01 00:17:00', TIMESTAMP '2026-01-01 00:05:00') AS c

--- days are made
-- = 2024-02-29|2026-01-31|2026-01-31
SELECT make_date(2024, 2, 29) AS a, to_date('2026-01-31') AS b, to_date('31.01.2026', '%d.%m.%Y') AS c

--- days are written
-- = 05.01.2026|07:08:09|Monday 005
SELECT to_char(DATE '2026-01-05', '%d.%m.%Y') AS a, to_char(TIMESTAMP '2026-01-05 07:08:09', '%H:%M:%S') AS b, to_char(DATE '2026-01-05', '%A %j') AS c

--- moments in a zone are rounded in it
-- = 2026-07-02T00:00:00.000000|1|2026-07-02
SELECT date_trunc('day', TIMESTAMPTZ '2026-07-01 23:00:00Z' AT TIME ZONE 'Europe/Berlin') AS a, extract(hour FROM TIMESTAMPTZ '2026-07-01 23:00:00Z' AT TIME ZONE 'Europe/Berlin') AS b, CAST(TIMESTAMPTZ '2026-07-01 23:00:00Z' AT TIME ZONE 'Europe/Berlin' AS date) AS c

--- a clock is one in its zone
-- = 2026-01-15T11:00:00.000000Z|2026-07-15T10:00:00.000000Z
SELECT TIMESTAMP '2026-01-15 12:00:00' AT TIME ZONE 'Europe/Berlin' AS a, TIMESTAMP '2026-07-15 12:00:00' AT TIME ZONE 'Europe/Berlin' AS b

--- a moment in a zone is what its clocks show
-- = 2026-07-02T01:00:00.000000|2026-07-02T01:00:00|02.07.2026 01:00|true
SELECT TIMESTAMPTZ '2026-07-01 23:00:00Z' AT TIME ZONE 'Europe/Berlin' AS a, CAST(TIMESTAMPTZ '2026-07-01 23:00:00Z' AT TIME ZONE 'Europe/Berlin' AS text) AS b, to_char(TIMESTAMPTZ '2026-07-01 23:00:00Z' AT TIME ZONE 'Europe/Berlin', '%d.%m.%Y %H:%M') AS c, TIMESTAMPTZ '2026-07-01 23:00:00Z' AT TIME ZONE 'Europe/Berlin' = TIMESTAMP '2026-07-02 01:00:00' AS d

--- from one zone to another
-- = 2026-01-15T20:00:00.000000|2026-01-15T12:00:00.000000Z
SELECT TIMESTAMP '2026-01-15 12:00:00' AT TIME ZONE 'Europe/Berlin' AT TIME ZONE 'Asia/Tokyo' AS a, TIMESTAMPTZ '2026-01-15 12:00:00Z' AT TIME ZONE 'UTC' AT TIME ZONE 'utc' AS b

--- an hour that clocks leave out, and one that they show twice
-- = 2026-03-29T01:30:00.000000Z|2026-10-25T01:30:00.000000Z
SELECT TIMESTAMP '2026-03-29 02:30:00' AT TIME ZONE 'Europe/Berlin' AS a, TIMESTAMP '2026-10-25 02:30:00' AT TIME ZONE 'Europe/Berlin' AS b

--- a zone by its distance is east
-- = 2026-07-01T13:00:00.000000|2026-07-01T07:00:00.000000Z
SELECT TIMESTAMPTZ '2026-07-01 10:00:00Z' AT TIME ZONE INTERVAL '3 hours' AS a, TIMESTAMP '2026-07-01 02:00:00' AT TIME ZONE INTERVAL '-5 hours' AS b

--- texts and dates in a zone are moments in UTC
-- = 2026-01-01T13:00:00.000000|2026-01-01T01:00:00.000000|~
SELECT '2026-01-01 12:00:00' AT TIME ZONE 'Europe/Berlin' AS a, DATE '2026-01-01' AT TIME ZONE 'Europe/Berlin' AS b, NULL AT TIME ZONE 'Europe/Berlin' AS c

--- a zone for each row, by the function's name
-- = 2026-01-01T13:00:00.000000|2026-01-01T12:00:00.000000
-- = 2026-01-01T21:00:00.000000|2026-01-01T12:00:00.000000
-- = ~|2026-01-01T12:00:00.000000
SELECT timezone(place, TIMESTAMPTZ '2026-01-01 12:00:00Z') AS a, timezone('UTC', TIMESTAMPTZ '2026-01-01 12:00:00Z') AS b FROM (VALUES (1, 'Europe/Berlin'), (2, 'Asia/Tokyo'), (3, NULL)) AS v(n, place) ORDER BY n

--- spans are sorted by how long they are
-- = 3
-- = 1
-- = 2
-- = 4
SELECT n FROM (VALUES (1, INTERVAL '1 month'), (2, INTERVAL '31 days'), (3, INTERVAL '25 hours'), (4, NULL)) AS v(n, span) ORDER BY span

--- spans are compared by how long they are
-- = true|true|true|false
SELECT INTERVAL '1 month' = INTERVAL '30 days' AS a, INTERVAL '1 day' < INTERVAL '25 hours' AS b, TIMESTAMP '2026-01-03' - TIMESTAMP '2026-01-01' > INTERVAL '1 day' AS c, TIMESTAMP '2026-01-03' - TIMESTAMP '2026-01-01' > INTERVAL '3 days' AS d

--- rows with NULL are not known
-- = ~|false|~
SELECT (1, NULL) = (1, NULL) AS a, (1, NULL) = (2, NULL) AS b, (1, NULL) < (1, 2) AS c

--- times of day
-- = 12:34:56.000000|00:00:00.000001|true
SELECT TIME '12:34:56' AS a, TIME '00:00:00.000001' AS b, TIME '12:00:00' < TIME '13:00:00' AS c

--- a time of day goes round
-- = 01:00:00.000000|23:30:00.000000
SELECT TIME '23:00:00' + INTERVAL '2 hours' AS a, TIME '00:30:00' - INTERVAL '1 hour' AS b

--- lists
-- = [1,2,null]|2|3|1
SELECT make_array(1, 2, NULL) AS a, cardinality(make_array(1, 2)) AS b, array_length(make_array(1, 2, 3)) AS c, make_array(1, 2)[1] AS d

--- what lists have
-- = true|2|a-b|[1,2,3]
SELECT array_has(make_array(1, 2), 2) AS a, array_position(make_array('a', 'b'), 'b') AS b, array_to_string(make_array('a', 'b'), '-') AS c, array_sort(make_array(3, 1, 2)) AS d

--- lists are joined
-- = [1,2]|[1,2,3]|[1,2]|[2,3]
SELECT array_append(make_array(1), 2) AS a, array_concat(make_array(1), make_array(2, 3)) AS b, array_distinct(make_array(1, 1, 2)) AS c, array_slice(make_array(1, 2, 3, 4), 2, 3) AS d

--- texts become lists
-- = ["a","b","","c"]|2
SELECT string_to_array('a,b,,c', ',') AS a, array_length(string_to_array('a b', ' ')) AS b

--- structures
-- = {"a":1,"b":"x"}|1.50
SELECT named_struct('a', 1, 'b', 'x') AS a, named_struct('a', 1.50)['a'] AS b

--- decimals in lists
-- = [1.50,2.00]|[0.1,12345678901234567890.5]
SELECT make_array(1.50, 2) AS a, make_array(0.1, 12345678901234567890.5) AS b

--- what is of no type
-- = Int64|Decimal128(2, 1)|Decimal128(23, 1)|Timestamp(ns, "UTC")
SELECT arrow_typeof(1) AS a, arrow_typeof(1.5) AS b, arrow_typeof(1.5 * 2) AS c, arrow_typeof(now()) AS d

--- now is one moment
-- = true|true|true
SELECT now() = now() AS a, current_date = CAST(now() AS date) AS b, now() > TIMESTAMPTZ '2020-01-01 00:00:00Z' AS c

--- now is what a series ends at
-- = true
SELECT count(*) > 6 AS a FROM generate_series(2020, CAST(extract(year FROM now()) AS bigint)) AS g

--- rows that are written down
-- = 1|a
-- = 2|~
SELECT * FROM (VALUES (1, 'a'), (2, NULL)) AS v (n, t) ORDER BY n

--- series
-- = 1
-- = 3
-- = 5
SELECT value FROM generate_series(1, 5, 2) ORDER BY value

--- a range has no end
-- = 0
-- = 1
-- = 2
SELECT value FROM range(0, 3) ORDER BY value

--- months of a series
-- = 2026-01-31
-- = 2026-02-28
-- = 2026-03-28
-- = 2026-04-28
SELECT CAST(value AS date) AS day FROM generate_series(DATE '2026-01-31', DATE '2026-04-30', INTERVAL '1 month') ORDER BY day

--- nothing is one row
-- = 1
SELECT count(*) AS n FROM (SELECT 1) AS x

--- conditions are booleans
-- = true|false|true|true|true
SELECT 1 < 2 AS a, NOT (1 < 2) AS b, (1 < 2) = (2 > 1) AS c, true IS TRUE AS d, NULL IS NOT TRUE AS e

--- rows are compared
-- = true|true|true
SELECT (1, 2) < (1, 3) AS a, (2, 1) > (1, 9) AS b, (1, 'a') = (1, 'a') AS c

--- hexadecimal
-- = ffffffffffffffff|0
SELECT to_hex(-1) AS a, to_hex(0) AS b

--- uuids differ
-- = true|36
SELECT uuid() <> uuid() AS a, length(uuid()) AS b

--- a boolean is written
-- = true!|yes
SELECT CAST(true AS text) || '!' AS a, CASE WHEN true THEN 'yes' END AS b

--- levenshtein
-- = 3|3
SELECT levenshtein('kitten', 'sitting') AS a, levenshtein('', 'abc') AS b

--- trigonometry
-- = 0|1|0|180
SELECT sin(CAST(0 AS double)) AS a, cos(CAST(0 AS double)) AS b, atan2(CAST(0 AS double), CAST(1 AS double)) AS c, degrees(pi()) AS d

--- integers of types
-- = 127|-32768|2147483648|255
SELECT CAST(127 AS tinyint) AS a, CAST(-32768 AS smallint) AS b, CAST(2147483647 AS int) + 1 AS c, CAST(255 AS int) AS d
