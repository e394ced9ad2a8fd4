-- A value of each type, at both of its ends and NULL. breadth.rs says how this is read.

--- all columns of the table of numbers
SELECT * FROM numbers_of_all;

--- whole numbers at their ends
SELECT id, i8, u8, i16, u16, i32, u32, i64, u64 FROM numbers_of_all;

--- whole numbers of 128 and 256 bits at their ends
SELECT id, i128, u128, i256, u256, -i128 AS a, toString(u256) AS told, u256 - 1 AS b, i256 + 1 AS c FROM numbers_of_all;

--- exact numbers keep every digit and their scale
SELECT id, d32, d64, d128, d256 FROM numbers_of_all;

--- exact numbers that are computed
SELECT id, d32 * 2 AS a, d32 / 3 AS b, d128 / 3 AS c, -d256 AS d, d32 + d64 AS e, toDecimal256('1', 75) AS f, round(d32, 1) AS g, abs(d128) AS h FROM numbers_of_all WHERE id > 2;

--- exact numbers with another scale
SELECT toDecimal32('-0.5', 1) AS a, toDecimal64('0.1', 18) AS b, toDecimal128('0', 38) AS c, toDecimal256('-1e-70', 70) AS d, CAST('007.50' AS Decimal(10, 3)) AS e, CAST(1 AS Decimal(1, 0)) AS f;

--- floats have their shortest digits, large ones too
SELECT id, f32, f64, bf FROM numbers_of_all;

--- floats of 32 bits beyond those that are all whole numbers
SELECT number AS id, toFloat32(pow(10, number)) AS a, toFloat32(-pow(3, number)) AS b, toFloat32(16777215 + number) AS c, toFloat32(1 / pow(7, number)) AS d FROM numbers(39);

--- floats of 16 bits
SELECT number AS id, toBFloat16(pow(10, number - 19)) AS a, toBFloat16(number / 3) AS b, toBFloat16(number * 257) AS c FROM numbers(39);

--- floats that are no numbers
SELECT 1 AS id, nan AS a, inf AS b, -inf AS c, toFloat32(nan) AS d, toFloat32(-inf) AS e, 0 / 0 AS f, 1 / 0 AS g, toBFloat16(inf) AS h, -0. AS i, toFloat32(-0.) AS j;

--- floats in expressions
SELECT id, f32 * 2 AS a, f32 + 0.1 AS b, toFloat64(f32) AS c, -f64 AS d, f64 / 3 AS e, toString(f32) AS told, f32 = 0.1 AS g, round(f64, 2) AS h FROM numbers_of_all WHERE id > 2;

--- literals of numbers
SELECT 1 AS a, -1 AS b, 255 AS c, 256 AS d, 4294967296 AS e, 9223372036854775807 AS f, -9223372036854775808 AS g, 18446744073709551615 AS h, 18446744073709551616 AS i, 1.10 AS j, .5 AS k, 1. AS l,
    1e3 AS m, 1.5e-7 AS n, 0x41 AS o, 0b101 AS p, 1_000_000 AS q, 1e-320 AS r, 1.7976931348623157e308 AS s, 123456789012345678901234567890 AS t, 0.1 + 0.2 AS u;

--- a NULL of each type of an expression
SELECT 1 AS id, NULL AS a, CAST(NULL AS Nullable(Int64)) AS b, CAST(NULL AS Nullable(UInt256)) AS c, CAST(NULL AS Nullable(Decimal(76, 3))) AS d, CAST(NULL AS Nullable(Float32)) AS e,
    CAST(NULL AS Nullable(String)) AS f, CAST(NULL AS Nullable(FixedString(3))) AS g, CAST(NULL AS Nullable(UUID)) AS h, CAST(NULL AS Nullable(Date32)) AS i, CAST(NULL AS Nullable(DateTime)) AS j,
    CAST(NULL AS Nullable(DateTime64(9))) AS k, CAST(NULL AS Nullable(IPv4)) AS l, CAST(NULL AS Nullable(IPv6)) AS m, CAST(NULL AS Nullable(Bool)) AS n, CAST(NULL AS Nullable(Enum8('a' = 1))) AS o,
    CAST(NULL AS LowCardinality(Nullable(String))) AS p, NULL + 1 AS q, CAST(NULL AS Nullable(Time)) AS r, CAST(NULL AS Nullable(Time64(3))) AS s, CAST(NULL AS Variant(Int8, String)) AS t;

--- yes and no
SELECT id, yes, NOT yes AS a, id = 1 AS b, id > 1 AND yes AS c, toBool(id) AS d, CAST(yes AS UInt8) AS e, toString(yes) AS told, true AS f, CAST(NULL AS Nullable(Bool)) AS g FROM numbers_of_all;

--- all columns of the table of texts
SELECT * FROM texts;

--- texts as they are
SELECT id, v, length(v) AS bytes, lengthUTF8(v) AS letters, v IS NULL AS missing, hex(v) AS told FROM texts;

--- texts of a fixed length, without what fills them
SELECT id, f, length(f) AS bytes, hex(f) AS told, toFixedString('ab', 5) AS a, toString(f) = 'abcd' AS b FROM texts;

--- texts with every sign of ASCII
SELECT number AS id, char(number) AS sign FROM numbers(128);

--- texts beyond the plane of the common signs
SELECT 'é漢🦀' AS a, '\u{1F600}' AS b, 'a\xC3\xA9' AS c, '\x7F' AS d, 'tab\t' AS e, 'feed\f\v\a\b' AS f, $$dollars 'and' "quotes" \$$ AS g, 'it''s' AS h;

--- words of enumerations
SELECT id, e16, toInt16(e16) AS place, toString(e16) AS told, CAST(e16 AS Enum16('x' = -32768, '' = 0, 'é' = 32767)) AS a, CAST('b' AS Enum('a', 'b')) AS b FROM texts;

--- words of a dictionary
SELECT id, word, toTypeName(word) AS kind, toLowCardinality(id) AS a, toLowCardinality(toNullable(id)) AS b, CAST(v AS LowCardinality(Nullable(String))) AS c FROM texts;

--- addresses
SELECT id, v4, v6, toString(v4) AS told4, toString(v6) AS told6, toIPv6(v4) AS mapped, IPv4StringToNum(toString(v4)) AS a, cutIPv6(v6, 2, 1) AS b FROM texts;

--- addresses that have a short form
SELECT arrayJoin(['::', '::1', '::0.0.1.2', '::1.2.3.4', '::ffff:0.0.0.0', '::ffff:255.255.255.255', '1::', '1:2:3:4:5:6:7:8', '1:0:3:4:5:6:7:8', '0:0:1::', 'fe80::1', '1:0:0:4::8', '64:ff9b::1.2.3.4']) AS told,
    toIPv6(told) AS address, [toIPv6(told)] AS list;

--- keys
SELECT id, code, toString(code) AS told, toUUID(toString(code)) = code AS same, UUIDStringToNum(toString(code)) = 'x' AS a, toUUIDOrNull('nonsense') AS b FROM texts;

--- all columns of the table of times
SELECT * FROM times;

--- days at both ends of their calendars
SELECT id, d, d32, toString(d) AS told, toString(d32) AS told32, toYear(d32) AS y, toLastDayOfMonth(d) AS e, dateDiff('day', toDate32('1970-01-01'), d32) AS days FROM times;

--- moments in UTC, whatever zone shows them
SELECT id, s, west, toString(west) AS told, toTimezone(west, 'Asia/Tokyo') AS east, toUnixTimestamp(west) AS seconds, toHour(west) AS hour, maybe FROM times;

--- moments with digits behind the second, at both ends
SELECT id, t0, t3, t6 FROM times;

--- moments with more digits than a microsecond has
SELECT id, t7, t9, maybe9, toString(t9) AS told, toDateTime64(t9, 6) AS shorter, toDateTime64(t7, 8, 'UTC') AS longer FROM times;

--- moments of each number of digits
SELECT toDateTime64('2026-02-03 04:05:06.123456789', 0, 'UTC') AS a, toDateTime64('2026-02-03 04:05:06.123456789', 1, 'UTC') AS b, toDateTime64('2026-02-03 04:05:06.123456789', 2, 'UTC') AS c,
    toDateTime64('2026-02-03 04:05:06.123456789', 3, 'UTC') AS d, toDateTime64('2026-02-03 04:05:06.123456789', 4, 'UTC') AS e, toDateTime64('2026-02-03 04:05:06.123456789', 5, 'UTC') AS f,
    toDateTime64('2026-02-03 04:05:06.123456789', 6, 'UTC') AS g, toDateTime64('2026-02-03 04:05:06.123456789', 7, 'UTC') AS h, toDateTime64('2026-02-03 04:05:06.123456789', 8, 'UTC') AS i,
    toDateTime64('2026-02-03 04:05:06.123456789', 9, 'UTC') AS j;

--- moments about a clock that is set
SELECT number AS id, toDateTime('2026-03-29 00:30:00', 'UTC') + toIntervalMinute(30 * number) AS utc, toTimezone(utc, 'Europe/Berlin') AS berlin, toString(berlin) AS told, timezoneOffset(berlin) AS off FROM numbers(6);

--- spans of time
SELECT id, span, span6, toString(span) AS told, toTime64('12:34:56.789', 3) AS a, toTime('00:00:01') AS b, CAST('25:00:00' AS Time) AS c, toTime64('-00:00:00.000000001', 9) AS d FROM times;

--- spans by their unit
SELECT INTERVAL 3 DAY AS a, toIntervalMonth(-1) AS b, INTERVAL 1 YEAR AS c, toIntervalNanosecond(5) AS d, INTERVAL '2' WEEK AS e, toIntervalQuarter(4) AS f, (INTERVAL 1 DAY, INTERVAL 2 HOUR) AS g,
    toDateTime64('2026-01-01 00:00:00', 3, 'UTC') - toDateTime64('2025-12-31 23:59:59.5', 3, 'UTC') AS h;

--- lists
SELECT 1 AS id, [1, 2, 3] AS a, ['a', 'it\'s', '"', ''] AS b, [1.5, nan, inf, -inf, -0.] AS c, [NULL, 1] AS d, [] AS e, [[1], [], [2, 3]] AS f, [toDecimal64('1.50', 2)] AS g, [true, false] AS h,
    [toDate('2026-01-01')] AS i, [toDateTime('2026-01-01 10:00:00', 'UTC')] AS j, [toDateTime64('2026-01-01 10:00:00.5', 3, 'Asia/Tokyo')] AS k, [toUUID('c4ca4238-a0b9-2382-0dcc-509a6f75849b')] AS l,
    [toIPv4('1.2.3.4')] AS m, [18446744073709551615, 0] AS n, [toInt256('-57896044618658097711785492504343953926634992332820282019728792003956564819968')] AS o, emptyArrayString() AS p,
    [CAST('a' AS Enum8('a' = 1))] AS q, [toFixedString('ab', 3)] AS r, [toFloat32(0.1), toFloat32(1e38)] AS s, [toTime('12:00:00')] AS t, [INTERVAL 1 DAY] AS u, [toBFloat16(1e38)] AS w;

--- pairs, with names and without
SELECT 1 AS id, (1, 'x', NULL) AS a, tuple(1) AS b, CAST((1, 'x') AS Tuple(a Int8, b String)) AS c, CAST((1, (2, 3)) AS Tuple(`a b` Int8, `"q"` Tuple(y Int8, z Int8))) AS d, ((1, 2), [3, 4]) AS e,
    CAST((0.1, '1.50') AS Tuple(f Float32, d Decimal(9, 2))) AS f, [(1, 'a'), (2, 'b')] AS g, (true, toDate('2026-01-01'), toDateTime('2026-01-01 10:00:00', 'UTC')) AS h, tuple(NULL) AS i;

--- maps
SELECT 1 AS id, map('a', 1, 'b', 2) AS a, map() AS b, map(1, 'x', 2, NULL) AS c, map('k', [1, 2]) AS d, map('o', map('i', 1.5)) AS e, map(toDate('2026-01-01'), true) AS f, map('a', 1, 'b', 2) AS g,
    map('it\'s "q"', '\n') AS h, map(toUUID('c4ca4238-a0b9-2382-0dcc-509a6f75849b'), 1) AS i, map(toDateTime('2026-01-01 10:00:00', 'Asia/Tokyo'), 1) AS j, map(18446744073709551615, toDecimal32('0.10', 2)) AS k;

--- lists, pairs and maps of a table
SELECT id, tags, counts, place, counts['shots'] AS shots, place.lat AS lat, place.2 AS lon, length(tags) AS many, mapKeys(counts) AS names FROM matches;

--- what is nested
SELECT id, nest.k, nest.v, nest.k[1] AS first, arrayZip(nest.k, nest.v) AS pairs FROM documents;

--- what is nested, each by itself
SELECT id, k, v FROM documents ARRAY JOIN nest.k AS k, nest.v AS v;

--- documents
SELECT id, doc, typed FROM documents;

--- what is in documents
SELECT id, doc.a.b::String AS a, doc.n::Nullable(Int64) AS n, doc.s::String AS s, typed.n AS m, typed.a.b AS b, toString(doc) AS told, JSONAllPaths(doc) AS paths, doc.f::Nullable(Float64) AS f FROM documents;

--- documents in lists and in pairs
SELECT id, [doc] AS list, (id, typed) AS pair, map('doc', doc) AS named, [doc, '{"x": 1}'::JSON] AS two FROM documents;

--- documents that are texts
SELECT JSONExtractInt('{"a": {"b": 7}}', 'a', 'b') AS a, JSONExtractRaw('{"a": [1, 2.50]}', 'a') AS b, JSON_VALUE('{"a": "x"}', '$.a') AS c, toJSONString([1, NULL]) AS d,
    JSONExtract('{"a": 1.5}', 'a', 'Nullable(Float64)') AS e, JSONExtractKeys('{"a": 1, "b": 2}') AS f, simpleJSONExtractString('{"a":"x"}', 'a') AS g, JSONLength('[1, 2]') AS h, isValidJSON('{') AS i;

--- one of several types
SELECT id, either, variantType(either) AS kind, either.String AS text, either.UInt64 AS number, variantElement(either, 'Array(Int32)') AS list, [either] AS all, (id, either) AS pair FROM documents;

--- what has any type, told as a text
SELECT id, toString(any) AS told, dynamicType(any) AS kind, any.String AS text, any.Int64 AS number FROM documents;

--- states of aggregates, finished
SELECT team, finalizeAggregation(average) AS a, goals, arraySort(teams) AS rivals FROM sums;

--- states of aggregates, merged
SELECT 1 AS id, avgMerge(average) AS a, sum(goals) AS b, length(groupUniqArrayArray(teams)) AS c FROM sums;

--- points, rings and polygons
SELECT 1 AS id, CAST((1.5, -2.) AS Point) AS a, CAST([(0, 0), (10, 0.5), (10, 10)] AS Ring) AS b, readWKTPolygon('POLYGON((0 0,10 0,10 10,0 0),(1 1,2 1,2 2,1 1))') AS c, readWKTMultiPolygon('MULTIPOLYGON(((0 0,1 0,1 1,0 0)))') AS d,
    readWKTLineString('LINESTRING (1 1, 2 2)') AS e, wkt(readWKTPoint('POINT (1.2 3.4)')) AS f;

--- no rows at all
SELECT id, team, fee, played, tags, counts, place, is_final FROM matches WHERE id > 1000;

--- nothing in an aggregate of no rows
SELECT count() AS a, sum(fee) AS b, max(goals) AS c, avg(weight) AS d, min(played) AS e, any(team) AS f, groupArray(team) AS g, maxOrNull(id) AS h, sumOrNull(id) AS i FROM matches WHERE id > 1000;

--- names of columns that have to be quoted
SELECT id AS `a b`, id AS `"q"`, id AS `é`, id AS `a.b`, id AS `SELECT`, id AS `it's`, id AS "b`c", id AS `back\\slash` FROM staff;
