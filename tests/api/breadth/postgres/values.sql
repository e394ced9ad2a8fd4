-- A value of each type, at both of its ends and NULL. breadth.rs says how this is read.

--- whole numbers at their ends
SELECT (-32768)::int2 AS a, 32767::int2 AS b, (-2147483648)::int4 AS c, 2147483647 AS d, (-9223372036854775808)::int8 AS e, 9223372036854775807 AS f,
    4294967295::oid AS g;

--- a NULL of each type
SELECT 1 AS id, NULL::bool AS a, NULL::int2 AS b, NULL::int4 AS c, NULL::int8 AS d, NULL::oid AS e, NULL::float4 AS f, NULL::float8 AS g, NULL::numeric AS h,
    NULL::text AS i,
    NULL::varchar(3) AS j, NULL::char(3) AS k, NULL::name AS l, NULL::bytea AS m, NULL::date AS n, NULL::time AS o, NULL::timestamp AS p, NULL::timestamptz AS q,
    NULL::uuid AS r,
    NULL::json AS s, NULL::jsonb AS t, NULL::int[] AS u, NULL::text[] AS v, NULL::interval AS w, NULL::timetz AS x, NULL::inet AS y, NULL::int4range AS z,
    NULL::side AS aa,
    NULL::place AS ab, NULL::score AS ac, NULL::xml AS ad, NULL::money AS ae, NULL::bit(3) AS af, NULL::point AS ag, NULL::tsvector AS ah, NULL AS ai;

--- truth, and what is unknown
SELECT n AS id, n > 2 AS a, nullif(n > 2, false) AS b, (n = 2) IS TRUE AS c, NULL::bool IS UNKNOWN AS d, bool 'off' AS e FROM (VALUES (1), (2), (3)) AS v (n);

--- exact numbers keep their scale
SELECT 1.10 AS a, 1.00::numeric(5, 3) AS b, 0.000001 AS c, -0.0 AS d, 12345678901234567890123456789.987654321 AS e, 1e-20::numeric AS f, 1e20::numeric AS g,
    100::numeric(5, -2) AS h, 007.50 AS i;

--- exact numbers that are none
SELECT 'NaN'::numeric AS a, 'Infinity'::numeric AS b, '-Infinity'::numeric AS c, 'NaN'::numeric = 'NaN'::numeric AS d;

--- exact numbers of very many digits
SELECT 2::numeric ^ 1000 AS a, (10::numeric ^ 3000) + 0.5 AS b, 1 / 3::numeric(1000, 900) AS c, factorial(60) AS d, repeat('9', 5000)::numeric AS e, ('0.' || repeat('0',
    2000) || '1')::numeric AS f;

--- quotients have the digits that the server gives them
SELECT n AS id, 1 / n::numeric AS a, 10.0 / n AS b, n % 3 AS c, -7 / n AS d, mod(-7, n) AS e, div(7.5, n) AS f, sqrt(n::numeric) AS g, exp(n::numeric) AS h,
    ln(n::numeric) AS i, 2.5 ^ n AS j FROM generate_series(1, 9) AS n;

--- double precision at its ends
SELECT 5e-324::float8 AS a, 2.2250738585072014e-308::float8 AS b, 1.7976931348623157e308::float8 AS c, -1.7976931348623157e308::float8 AS d,
    9007199254740993::float8 AS e, 0.1::float8 + 0.2::float8 AS f,
    1e15::float8 AS g, 1e16::float8 AS h, 123456789.125::float8 AS i, 1e-5::float8 AS j, 1e-4::float8 AS k, '-0'::float8 AS l, 1::float8 / 3 AS m, 100::float8 AS n,
    1e22::float8 AS o;

--- double precision that is no number
SELECT 'NaN'::float8 AS a, 'Infinity'::float8 AS b, '-Infinity'::float8 AS c, 'NaN'::float4 AS d, 'Infinity'::float4 AS e, '-Infinity'::float4 AS f;

--- real has its own digits
SELECT 0.1::real AS a, 1.1::real AS b, (1 / 3.0)::real AS c, 16777216::real AS d, 3.14159274::real AS e, 1e-10::real AS f, 123.456::real AS g, '-0'::real AS h,
    1.17549435e-38::real AS i, 1e-45::real AS j;

--- real that is large has its own digits, too
SELECT 123456789::real AS a, 1e38::real AS b, 3.4028235e38::real AS c, -1e10::real AS d, 33554434::real AS e, 1e20::real AS f;

--- real in expressions
SELECT id, ratio, ratio * 2 AS twice, ratio::float8 AS wide, ratio::numeric AS exact, ratio::text AS told FROM matches;

--- texts that a table of commas finds hard
SELECT id, v, length(v) AS n, v IS NULL AS missing FROM texts;

--- texts of all their types
SELECT 'ab'::char(4) AS a, 'ab'::varchar(1) AS b, 'c'::"char" AS c, 'name'::name AS d, ''::text AS e, ''::char(2) AS f, repeat('é', 10000) AS g, 'x'::char AS h;

--- ways to write a text
SELECT E'tab\there \\ \'q\' \u00e9 \x41' AS a, U&'d\0061t\+000061' AS b, U&'d!0061' UESCAPE '!' AS c, $$it's$$ AS d, $q$a$$b$q$ AS e, N'n' AS f, 'it''s' AS g, 'two'
    ' parts' AS h, E'\uD83E\uDD80' AS i, '\n stays' AS j;

--- bytes
SELECT ''::bytea AS a, '\x00ff'::bytea AS b, 'abc\\def'::bytea AS c, decode('AAECAwQ=', 'base64') AS d, sha256('x') AS e, decode(repeat('00017fff', 100), 'hex') AS f,
    length('\x0102'::bytea) AS n;

--- days, also before the first and after the last year of four digits
SELECT date '2026-02-28' AS a, date '0001-01-01' AS b, date '0001-12-31 BC' AS c, date '0044-03-15 BC' AS d, date '4713-01-01 BC' AS e, date '9999-12-31' AS f,
    date '10000-01-01' AS g, date '99999-12-31' AS h, date 'epoch' AS i, date '2000-02-29' AS j;

--- moments, also before the first and after the last year of four digits
SELECT timestamptz '2026-03-29 02:30:00 Europe/Berlin' AS a, timestamptz '2026-01-01 00:00:00.000001+14' AS b, timestamptz '0044-03-15 12:00:00+00 BC' AS c,
    timestamptz '10000-01-01 00:00:00+00' AS d,
    timestamptz '99999-12-31 23:59:59.999999+00' AS e, timestamptz 'epoch' AS f, timestamptz '1969-12-31 23:59:59.5+00' AS g,
    timestamptz '2026-01-01 00:00:00-00:30' AS h;

--- what a clock shows without a zone
SELECT timestamp '2026-02-28 23:59:59.999999' AS a, timestamp '0001-01-01 00:00:00' AS b, timestamp '0044-03-15 12:00:00 BC' AS c,
    timestamp '10000-01-01 00:00:00.5' AS d, timestamp 'epoch' AS e,
    timestamp(0) '2026-01-01 00:00:00.6' AS f, '20260102T030405'::timestamp AS g, timestamp '1582-10-10 01:02:03' AS h;

--- times of day
SELECT time '00:00' AS a, time '23:59:59.999999' AS b, time '24:00:00' AS c, time '04:05 PM' AS d, time(3) '01:02:03.45678' AS e, timetz '12:00:00+02:30' AS f,
    timetz '04:05:06.789-08' AS g, localtime IS NOT NULL AS h;

--- spans of time
SELECT interval '1 year 2 months 3 days 04:05:06.789' AS a, interval '-1 day +02:00' AS b, interval '0' AS c, interval 'P1Y2M3DT4H5M6S' AS d,
    interval '1-2' YEAR TO MONTH AS e, interval '90' MINUTE AS f,
    interval '1 00:00:01' DAY TO SECOND AS g, interval '178000000 years' AS h, interval '@ 1 hour ago' AS i, make_interval(weeks => 2, secs => 0.000001) AS j,
    interval '1.5 days' AS k, interval(0) '1.6 s' AS l, 1 AS id;

--- UUIDs
SELECT uuid 'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11' AS a, '{a0eebc999c0b4ef8bb6d6bb9bd380a11}'::uuid AS b, '00000000-0000-0000-0000-000000000000'::uuid AS c, key, id
    FROM matches WHERE id < 8;

--- JSON as it was written
SELECT '{"b" :  1.10, "a":[ ],"b":2}'::json AS a, '  [1,2 ,{"x":null}]'::json AS b, '"text"'::json AS c, 'null'::json AS d, '1e5'::json AS e,
    '{"é":"\u00e9","l":"a\nb"}'::json AS f, 1 AS id;

--- JSON as the server keeps it
SELECT '{"b" :  1.10, "a":[ ],"b":2}'::jsonb AS a, '[1, 2.50, 1e3, -0, 12345678901234567890.123]'::jsonb AS b, '"a\"b\\\u00e9\n"'::jsonb AS c, 'null'::jsonb AS d,
    'true'::jsonb AS e, '{}'::jsonb AS f,
    (repeat('[', 300) || repeat(']', 300))::jsonb AS g, 1 AS id;

--- arrays of each kind
SELECT 1 AS id, ARRAY[1, NULL, -3] AS a, ARRAY[[1, 2], [3, 4]] AS b, '{}'::int[] AS c, ARRAY[9223372036854775807] AS d, ARRAY[true, false, NULL] AS e, ARRAY['a', NULL,
    'NULL', '', 'a,b', 'say "hi"', E'back\\slash', '{x}', ' s '] AS f,
    ARRAY[1.10, 'NaN', -0.001]::numeric[] AS g, ARRAY[0.1, 1e300, 5e-324]::float8[] AS h, ARRAY['\x00ff', '']::bytea[] AS i,
    ARRAY['a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11']::uuid[] AS j,
    ARRAY['home', 'away']::side[] AS k, '[0:2]={1,2,3}'::int[] AS l, ARRAY[[['x']]] AS m, ARRAY['ab']::char(3)[] AS n, ARRAY[32767]::int2[] AS o,
    ARRAY[4294967295]::oid[] AS p, ARRAY['n']::name[] AS q;

--- arrays of times
SELECT 1 AS id, ARRAY['2026-01-31', NULL, '0001-01-01']::date[] AS a, ARRAY['2026-01-31 12:00:00.5+02']::timestamptz[] AS b,
    ARRAY['2026-01-31 12:00:00.000001']::timestamp[] AS c, ARRAY['12:00', '24:00']::time[] AS d,
    ARRAY['infinity', '-infinity']::date[] AS e, ARRAY['infinity']::timestamptz[] AS f, ARRAY['1 day', '02:00']::interval[] AS g;

--- arrays of distant days are written as distant days are
SELECT 1 AS id, ARRAY['10000-01-01', '0044-03-15 BC']::date[] AS a, ARRAY['10000-01-01 00:00:00']::timestamp[] AS b;

--- arrays of real have its own digits
SELECT 1 AS id, ARRAY[0.1, 1.1, NULL, 123.456]::real[] AS a, ARRAY[1e38]::real[] AS b;

--- arrays of floats that are no numbers
SELECT 1 AS id, ARRAY['NaN', 'Infinity', '-Infinity', 1.5, NULL]::float8[] AS a, ARRAY['NaN']::float4[] AS b;

--- arrays of documents, and of what has no column
SELECT 1 AS id, ARRAY['{"a" : 1}', '[1, "x"]', NULL]::json[] AS a, ARRAY['{"b" : 1.10}']::jsonb[] AS b, ARRAY['10.0.0.1']::inet[] AS c, ARRAY[row('a', 1,
    '(1,2)')]::place[] AS d, ARRAY['[1,3)']::int4range[] AS e, ARRAY['1.5']::score[] AS f;

--- enumerations, and their order
SELECT id, side, side < 'away' AS before, enum_range(side) AS rest, enum_first(side) AS first FROM matches WHERE id < 10;

--- domains are what they are made of
SELECT id, mark, mark + 1 AS more, 1.5::score AS own FROM matches;

--- composites
SELECT id, seat, (seat).city AS city, (seat).zip + 1 AS zip, seat IS NULL AS missing, row(id, team, NULL) AS made FROM matches;

--- networks
SELECT inet '10.0.0.1/8' AS a, cidr '10.0.0.0/8' AS b, inet '::ffff:1.2.3.4' AS c, macaddr '08:00:2b:01:02:03' AS d, macaddr8 '08:00:2b:01:02:03:04:05' AS e,
    inet '192.168.1.5' << cidr '192.168.1/24' AS f,
    host(inet '10.0.0.1/8') AS g, masklen(inet '10.0.0.1/8') AS h, inet '10.0.0.1' + 25 AS i, inet '10.0.0.9' - inet '10.0.0.1' AS j, ~ inet '10.0.0.1' AS k,
    broadcast(inet '10.1.2.3/8') AS l;

--- shapes
SELECT 1 AS id, point '(1,2)' AS a, line '{1,-1,0}' AS b, lseg '[(0,0),(1,1.5)]' AS c, box '((0,0),(1,1))' AS d, path '((0,0),(1,1),(2,0))' AS e,
    path '[(0,0),(1,1)]' AS f, polygon '((0,0),(0,1),(1,1))' AS g,
    circle '<(0,0),1.5>' AS h, point '(1,2)' <-> point '(4,6)' AS i, box '((0,0),(2,2))' @> point '(1,1)' AS j, area(circle '<(0,0),1>') AS k,
    center(box '((0,0),(2,1))') AS l;

--- strings of bits
SELECT B'101' AS a, X'1F' AS b, B'10'::bit(4) AS c, B'1011'::varbit AS d, B'1100' & B'1010' AS e, B'1100' # B'1010' AS f, ~ B'1100' AS g, B'1' || B'0' AS h,
    5::bit(8) AS i, B'0101'::int AS j, get_bit(B'01', 1) AS k, length(B'') AS l;

--- ranges
SELECT id, during, guests, lower(during) AS a, upper(during) AS b, isempty(guests) AS c, guests * int4range(2, 6) AS d, during @> timestamp '2026-03-01 10:30' AS e,
    upper_inf(during) AS f FROM bookings;

--- ranges of each kind, and several of them
SELECT int8range(1, NULL) AS a, numrange(1.10, 2.0, '[]') AS b, daterange('2026-01-01', '2026-02-01') AS c, tstzrange('2026-01-01 00:00+00', 'infinity') AS d,
    'empty'::int4range AS e,
    int4multirange(int4range(1, 3), int4range(5, 9)) AS f, '{}'::datemultirange AS g, int4range(1, 5) -|- int4range(5, 7) AS h, range_merge(int4range(1, 2), int4range(8,
    9)) AS i, 1 AS id;

--- money
SELECT 1 AS id, money '12.34' AS a, (-1234567.891)::numeric::money AS b, money '92233720368547758.07' AS c, money '10' / money '4' AS d, money '1' * 2.5 AS e;

--- XML
SELECT 1 AS id, xml '<a b="1">x</a>' AS a, xmlelement(name p, xmlattributes('q' AS c), 'a<b', xmlelement(name br)) AS b, xmlforest(team, goals) AS c,
    xmlserialize(content xml '<x/>' AS text) AS d,
    xpath('/a/b/text()', xml '<a><b>1</b><b>2</b></a>')::text AS e, xml '<a/>' IS DOCUMENT AS f FROM matches WHERE id = 2;

--- what the server names itself by
SELECT 'matches'::regclass AS a, 'int4'::regtype AS b, 'doubled'::regproc AS c, 'english'::regconfig AS d, pg_lsn '16/B374D848' AS e, '10:20:10,14,15'::pg_snapshot AS f,
    '(0,1)'::tid AS g, '123'::xid8 AS h, pg_typeof(1.5) AS i, 1 AS id;

--- times without an end leave as text
SELECT 1 AS id, CAST(timestamptz 'infinity' AS text) AS a, NULLIF(date '-infinity', '-infinity') AS b, isfinite(timestamp 'infinity') AS c,
    date 'infinity' > date '99999-01-01' AS d, (date '100000-01-01')::text AS e;

--- casts in each of their spellings
SELECT CAST(3.7 AS int) AS a, 3.2::int8 AS b, int4 '7' AS c, float8(3) AS d, '12' :: numeric(5, 1) AS e, CAST('t' AS boolean) AS f, 65::text AS g,
    '{"a":1}'::jsonb::text AS h, 1::bool AS i, '  7 '::int AS j, 2.5::int AS k, 3.5::int AS l, (-2.5)::int AS m,
    '1 day'::interval::text AS n, 'a'::"char"::int AS o, '0x1F' AS p, 1.5e3::text AS q, true::int AS r, '2026-01-31'::timestamptz::date AS s, to_number('1,234.50',
    '9,999.99') AS t;

--- signs of all kinds
SELECT @ -5 AS a, |/ 2.0::float8 AS b, ||/ 27.0::float8 AS c, 2 ^ 10 AS d, 5 # 3 AS e, ~1 AS f, 1 << 4 AS g, -8 >> 1 AS h, 6 & 3 AS i, 6 | 1 AS j, 7 % 3 AS k,
    1 OPERATOR(pg_catalog.+) 2 AS l, -2 ^ 2 AS m, +3 AS n, 7 / 2 AS o, -7 / 2 AS p;
