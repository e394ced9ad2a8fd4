-- What the statements of this folder are asked of.

CREATE TABLE matches (
    id UInt32,
    team LowCardinality(String),
    rival Nullable(String),
    goals Nullable(Int8),
    views UInt64,
    fee Nullable(Decimal(12, 2)),
    ratio Float32,
    weight Nullable(Float64),
    played DateTime64(6, 'UTC'),
    shown DateTime('Europe/Berlin'),
    day Date,
    far Date32,
    side Enum8('home' = 1, 'away' = 2, 'neutral' = 3),
    tags Array(LowCardinality(String)),
    code Nullable(UUID),
    counts Map(String, Int32),
    place Tuple(lat Float64, lon Float64),
    is_final Bool
) ENGINE = MergeTree ORDER BY (team, id);

INSERT INTO matches
SELECT number,
    ['Ajax', 'Benfica', 'Celtic', 'Dynamo', 'Évian'][number % 5 + 1],
    if(number % 7 > 0, ['Ajax', 'Benfica', 'Celtic', 'Dynamo', 'Évian'][(number + 2) % 5 + 1], NULL),
    if(number % 11 > 0, number % 6, NULL),
    18446744073709551615 - number,
    if(number % 13 > 0, toDecimal64(number, 4) * toDecimal64('1234.5678', 4), NULL),
    number / 7,
    if(number % 17 > 0, number / 9, NULL),
    toDateTime64('2026-02-25 18:30:00.000001', 6, 'UTC') + toIntervalMinute(number * 1033),
    toDateTime('2026-02-25 20:15:30', 'UTC') + toIntervalSecond(number * 86401),
    toDate('2026-02-25') + number,
    toDate32('1900-01-01') + toIntervalYear(number * 6),
    ['home', 'away', 'neutral'][number % 3 + 1],
    arraySlice(['cup', 'final', 'rain', 'cup'], 1, number % 5),
    if(number % 5 > 0, toUUID(concat('00000000-', leftPad(toString(number), 4, '0'), '-4000-8000-0123456789ab')), NULL),
    if(number % 6 > 0, map('shots', number, 'corners', number % 4), map()),
    (number / 8, -number / 3),
    number % 3 = 0
FROM numbers(1, 60);

CREATE TABLE staff (id Int32, name String, boss Nullable(Int32), pay Decimal(9, 2)) ENGINE = MergeTree ORDER BY id;

INSERT INTO staff VALUES (1, 'Ann', NULL, 9000), (2, 'Bob', 1, 5000.5), (3, 'Cid', 1, 5000.50), (4, 'Dee', 2, 3000), (5, 'Eve', 2, 3000.01), (6, 'Fay', 3, 1234.56), (7, 'Gil', 6, 0);

CREATE TABLE numbers_of_all (
    id UInt8, i8 Int8, u8 UInt8, i16 Int16, u16 UInt16, i32 Int32, u32 UInt32, i64 Int64, u64 UInt64, i128 Int128, u128 UInt128, i256 Int256, u256 UInt256,
    d32 Decimal(9, 4), d64 Decimal(18, 0), d128 Decimal(38, 20), d256 Decimal(76, 30), f32 Float32, f64 Float64, bf BFloat16, yes Bool
) ENGINE = MergeTree ORDER BY id;

INSERT INTO numbers_of_all VALUES
    (1, -128, 0, -32768, 0, -2147483648, 0, -9223372036854775808, 0, '-170141183460469231731687303715884105728', '0',
     '-57896044618658097711785492504343953926634992332820282019728792003956564819968', '0', -99999.9999, -999999999999999999, '-999999999999999999.99999999999999999999',
     '-9999999999999999999999999999999999999999999999.999999999999999999999999999999', -3.4028235e38, -1.7976931348623157e308, -3.38e38, false),
    (2, 127, 255, 32767, 65535, 2147483647, 4294967295, 9223372036854775807, 18446744073709551615, '170141183460469231731687303715884105727', '340282366920938463463374607431768211455',
     '57896044618658097711785492504343953926634992332820282019728792003956564819967', '115792089237316195423570985008687907853269984665640564039457584007913129639935', 99999.9999,
     999999999999999999, '999999999999999999.99999999999999999999', '9999999999999999999999999999999999999999999999.999999999999999999999999999999', 1e38, 1e300, 1e38, true),
    (3, 0, 1, -1, 1, -1, 1, -1, 9223372036854775808, '-1', '18446744073709551616', '-1', '1', 0.0001, 0, '-0.00000000000000000001', '0.000000000000000000000000000001', 0.1, 0.1, 0.1, true),
    (4, 1, 2, 3, 4, 5, 6, 9007199254740993, 9007199254740993, '10000000000000000000', '4294967296', '1000000000000000000000000000000', '18446744073709551615', -12.34, 100, '12.5', '-7.25',
     123456792, 123456789012345680, 123456792, false),
    (5, 10, 20, 30, 40, 50, 60, 1000000000, 1000000000000, '1000000000', '999999999', '-1000000000', '1000000000000000000', 1, 7, '1', '1', 1e-45, 5e-324, 1e-40, false);

CREATE TABLE texts (id UInt8, v Nullable(String), f FixedString(4), word LowCardinality(Nullable(String)), e16 Enum16('a\'b' = -32768, 'c, )' = 0, 'é' = 32767), v4 IPv4, v6 IPv6, code UUID)
ENGINE = MergeTree ORDER BY id;

INSERT INTO texts VALUES
    (1, 'plain', 'abcd', 'x', 'a\'b', '0.0.0.0', '::', '00000000-0000-0000-0000-000000000000'),
    (2, '', '', '', 'c, )', '255.255.255.255', 'ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff', 'ffffffff-ffff-ffff-ffff-ffffffffffff'),
    (3, NULL, 'ab', NULL, 'é', '1.2.3.4', '::ffff:1.2.3.4', '01234567-89ab-cdef-0123-456789abcdef'),
    (4, 'it\'s "q" \\ % _ , ; \t tab\r\nline \0 nul é漢🦀', '漢', 'it\'s', 'é', '127.0.0.1', '2001:db8::ff00:42:8329', 'c4ca4238-a0b9-2382-0dcc-509a6f75849b'),
    (5, '\\N', 'a\0b', '\\N', 'é', '10.0.0.1', '::1.2.3.4', 'c4ca4238-a0b9-2382-0dcc-509a6f75849c'),
    (6, ' ', ' a ', 'NULL', 'é', '10.0.0.2', '1:0:0:2::3', 'c4ca4238-a0b9-2382-0dcc-509a6f75849d');

CREATE TABLE times (
    id UInt8, d Date, d32 Date32, s DateTime('UTC'), west DateTime('America/New_York'), t0 DateTime64(0, 'UTC'), t3 DateTime64(3, 'Asia/Kolkata'), t6 DateTime64(6, 'UTC'), t7 DateTime64(7, 'UTC'),
    t9 DateTime64(9, 'Asia/Tokyo'), span Time, span6 Time64(6), maybe Nullable(DateTime('Asia/Tokyo')), maybe9 Nullable(DateTime64(9, 'UTC'))
) ENGINE = MergeTree ORDER BY id;

INSERT INTO times
SELECT 1, toDate(0), toDate32('1900-01-01'), toDateTime(0, 'UTC'), toDateTime(0, 'America/New_York'), toDateTime64('1900-01-01 00:00:00', 0, 'UTC'), toDateTime64('1900-01-01 00:00:00', 3, 'UTC'),
    toDateTime64('1900-01-01 00:00:00.000001', 6, 'UTC'), toDateTime64('1900-01-01 00:00:00.0000001', 7, 'UTC'), toDateTime64('1900-01-01 12:00:00.000000001', 9, 'UTC'), toTime('-999:59:59'),
    toTime64('-999:59:59.999999', 6), CAST(NULL AS Nullable(DateTime('UTC'))), CAST(NULL AS Nullable(DateTime64(9, 'UTC')))
UNION ALL
SELECT 2, toDate('2149-06-06'), toDate32('2299-12-31'), toDateTime('2106-02-07 06:28:15', 'UTC'), toDateTime('2106-02-07 06:28:15', 'UTC'), toDateTime64('2299-12-31 23:59:59', 0, 'UTC'),
    toDateTime64('2299-12-31 12:59:59.999', 3, 'UTC'), toDateTime64('2299-12-31 23:59:59.999999', 6, 'UTC'), toDateTime64('2299-12-31 23:59:59.9999999', 7, 'UTC'),
    toDateTime64('2262-04-11 12:47:16.854775807', 9, 'UTC'), toTime('999:59:59'), toTime64('999:59:59.999999', 6), toDateTime('2026-03-29 01:59:59', 'UTC'), toDateTime64('1969-12-31 23:59:59.999999999', 9, 'UTC')
UNION ALL
SELECT 3, toDate('2024-02-29'), toDate32('1969-12-31'), toDateTime('2026-01-01 00:00:01', 'UTC'), toDateTime('2026-11-01 05:30:00', 'UTC'), toDateTime64('1969-12-31 23:59:59', 0, 'UTC'),
    toDateTime64('1969-12-31 23:59:59.999', 3, 'UTC'), toDateTime64('1969-12-31 23:59:59.5', 6, 'UTC'), toDateTime64('2026-01-01 00:00:00.1', 7, 'UTC'), toDateTime64('1969-12-31 23:59:59.5', 9, 'UTC'),
    toTime('00:00:00'), toTime64('-00:00:00.5', 6), toDateTime('2026-03-29 01:00:00', 'UTC'), toDateTime64('2026-01-01 00:00:00', 9, 'UTC');

CREATE TABLE documents (id UInt8, doc JSON, typed JSON(n Int64, `a.b` Nullable(String)), either Variant(Array(Int32), String, UInt64), any Dynamic, nest Nested(k String, v Nullable(Int32)))
ENGINE = MergeTree ORDER BY id;

INSERT INTO documents (id, doc, typed, either, any, `nest.k`, `nest.v`) VALUES
    (1, '{"a": {"b": [1, 2.5, "x", null, true]}, "s": "it\'s \\"q\\" é漢🦀 /", "n": 9007199254740993}', '{"n": 1, "a": {"b": "x"}}', 1, 1, ['a', 'b'], [1, NULL]),
    (2, '{}', '{"n": -9223372036854775808}', 'it\'s', 'text', [], []),
    (3, '{"list": [{"x": 1}, {"x": "y"}], "f": 0.1, "big": 18446744073709551615}', '{"n": 3, "extra": [1, 2]}', [1, 2, 3]::Array(Int32), [1, 2], ['é'], [-2147483648]),
    (4, '{"d": "2026-01-01", "e": ""}', '{"n": 4}', NULL, NULL, [''], [0]);

CREATE TABLE versions (id UInt32, version UInt32, price Decimal(9, 2)) ENGINE = ReplacingMergeTree(version) ORDER BY id;

INSERT INTO versions VALUES (1, 1, 10), (2, 1, 20), (3, 1, 30);

INSERT INTO versions VALUES (1, 2, 11), (3, 2, 33.33);

CREATE TABLE visits (id UInt64, page String, seconds UInt16) ENGINE = MergeTree ORDER BY (page, cityHash64(id)) SAMPLE BY cityHash64(id);

INSERT INTO visits SELECT number, ['home', 'cart', 'paid'][number % 3 + 1], number % 100 FROM numbers(3000);

CREATE TABLE trades (symbol String, at DateTime('UTC'), amount UInt32) ENGINE = MergeTree ORDER BY (symbol, at);

INSERT INTO trades VALUES ('A', '2026-01-01 10:00:00', 1), ('A', '2026-01-01 10:00:05', 2), ('B', '2026-01-01 10:00:05', 3), ('C', '2026-01-01 10:00:05', 4);

CREATE TABLE quotes (symbol String, at DateTime('UTC'), price Decimal(9, 3)) ENGINE = MergeTree ORDER BY (symbol, at);

INSERT INTO quotes VALUES ('A', '2026-01-01 09:59:59', 1.1), ('A', '2026-01-01 10:00:04', 1.234), ('A', '2026-01-01 10:00:06', 9.9), ('B', '2026-01-01 10:00:05', 2.5);

CREATE TABLE sums (team String, goals SimpleAggregateFunction(sum, Int64), teams SimpleAggregateFunction(groupUniqArrayArray, Array(String)), average AggregateFunction(avg, Int64))
ENGINE = AggregatingMergeTree ORDER BY team;

INSERT INTO sums SELECT team, sum(goals), groupUniqArray(assumeNotNull(rival)), avgState(toInt64(assumeNotNull(goals))) FROM matches WHERE goals IS NOT NULL GROUP BY team;

CREATE VIEW finals AS SELECT * FROM matches WHERE is_final;

CREATE VIEW of_team AS SELECT id, goals FROM matches WHERE team = {name:String};
