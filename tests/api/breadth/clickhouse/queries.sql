-- Queries as sellers write them. breadth.rs says how this is read.

--- a group of each team
SELECT team, count() AS games, sum(goals) AS total, avg(goals) AS mean, sum(fee) AS fees, max(played) AS last, min(day) AS first, uniqExact(rival) AS rivals FROM matches GROUP BY team;

--- a group that has enough
SELECT side, team, sum(goals) AS total FROM matches GROUP BY side, team HAVING total > 8;

--- grouping sets
SELECT team, side, count() AS games, sum(views) AS views, grouping(team) AS of_team, grouping(side) AS of_side FROM matches GROUP BY GROUPING SETS ((team, side), (team), ());

--- a rollup and a cube
SELECT 'rollup' AS kind, toString(side) AS side, is_final, count() AS games FROM matches GROUP BY ROLLUP(side, is_final) UNION ALL SELECT 'cube', toString(side), is_final, count() FROM matches GROUP BY CUBE(side, is_final);

--- groups of all that is not aggregated
SELECT team, is_final, count() AS games FROM matches GROUP BY ALL;

--- what is the same only once
SELECT DISTINCT team, side FROM matches;

--- the first of each
SELECT DISTINCT ON (team) team, id FROM matches ORDER BY team, id;

--- some rows of each group
SELECT team, id, goals FROM matches ORDER BY goals DESC, id LIMIT 2 BY team;

--- some rows of each group from a place on
SELECT team, id FROM matches ORDER BY id LIMIT 1, 2 BY team;

--- a page of an order
SELECT id, team FROM matches ORDER BY fee DESC NULLS LAST, id LIMIT 5 OFFSET 3;

--- rows that tie with the last
SELECT id, goals FROM matches ORDER BY goals DESC NULLS LAST LIMIT 3 WITH TIES;

--- rows where nothing was, filled
SELECT d, total FROM (SELECT day AS d, sum(goals) AS total FROM matches WHERE id % 4 = 0 AND id < 20 GROUP BY d ORDER BY d WITH FILL STEP 1);

--- values in between
SELECT n, v FROM (SELECT number * 3 AS n, number * 10 AS v FROM numbers(4) ORDER BY n WITH FILL TO 12 INTERPOLATE (v AS v + 1));

--- a window of a team
SELECT id, team, row_number() OVER w AS place, rank() OVER (PARTITION BY team ORDER BY goals DESC) AS ranked, dense_rank() OVER (PARTITION BY team ORDER BY goals DESC) AS dense,
    sum(goals) OVER w AS running, lagInFrame(id, 1, 0) OVER w AS before, leadInFrame(id) OVER (PARTITION BY team ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS after
FROM matches WINDOW w AS (PARTITION BY team ORDER BY id);

--- a window of some rows
SELECT id, avg(weight) OVER (ORDER BY id ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS moving, first_value(team) OVER (ORDER BY id) AS first, nth_value(id, 3) OVER (ORDER BY id) AS third, ntile(4) OVER (ORDER BY id) AS quarter,
    percent_rank() OVER (ORDER BY id) AS percent, max(fee) OVER (ORDER BY id RANGE BETWEEN 3 PRECEDING AND 3 FOLLOWING) AS near, count() OVER () AS all FROM matches;

--- lag and lead
SELECT id, lag(pay) OVER (ORDER BY id) AS before, lead(name, 2, 'nobody') OVER (ORDER BY id) AS after FROM staff;

--- the best of each, by what a window says
SELECT team, id, goals FROM matches QUALIFY row_number() OVER (PARTITION BY team ORDER BY goals DESC, id) <= 2;

--- what a query is told by its name
WITH best AS (SELECT team, sum(goals) AS total FROM matches GROUP BY team) SELECT b.team, b.total, m.id FROM best AS b JOIN matches AS m ON m.team = b.team WHERE m.id < 10;

--- values by their names
WITH 5 AS least, (SELECT max(id) FROM matches) AS most SELECT id, least, most - id AS left FROM matches WHERE id <= least;

--- steps that go on
WITH RECURSIVE steps AS (SELECT 1 AS n, toUInt64(1) AS f UNION ALL SELECT n + 1, f * (n + 1) FROM steps WHERE n < 15) SELECT n, f FROM steps;

--- a chain of staff
WITH RECURSIVE chain AS (SELECT id, name, boss, 0 AS depth, name AS path FROM staff WHERE boss IS NULL UNION ALL SELECT s.id, s.name, s.boss, c.depth + 1, concat(c.path, '>', s.name) FROM staff AS s JOIN chain AS c ON s.boss = c.id)
SELECT id, depth, path FROM chain;

--- inner, left, right and full joins
SELECT s.id AS id, s.name AS name, b.name AS boss, 'left' AS kind FROM staff AS s LEFT JOIN staff AS b ON s.boss = b.id UNION ALL SELECT s.id, s.name, b.name, 'inner' FROM staff AS s INNER JOIN staff AS b ON s.boss = b.id
UNION ALL SELECT s.id, s.name, b.name, 'full' FROM staff AS s FULL JOIN staff AS b ON s.boss = b.id;

--- rows that have a partner, and that have none
SELECT id, name, 'semi' AS kind FROM staff LEFT SEMI JOIN (SELECT boss FROM staff) AS b ON staff.id = b.boss UNION ALL SELECT id, name, 'anti' FROM staff LEFT ANTI JOIN (SELECT boss FROM staff) AS b ON staff.id = b.boss;

--- any one partner
SELECT s.id AS id, count() AS n FROM staff AS s ANY LEFT JOIN matches AS m ON m.goals = s.id GROUP BY s.id;

--- the last quote before each trade
SELECT t.symbol AS symbol, t.at AS at, t.amount AS amount, q.price AS price, q.at AS since FROM trades AS t ASOF LEFT JOIN quotes AS q ON t.symbol = q.symbol AND t.at >= q.at;

--- a join by a name that both have
SELECT symbol, count() AS n, sum(amount * price) AS total FROM trades INNER JOIN quotes USING (symbol) GROUP BY symbol;

--- all pairs
SELECT a.id AS a, b.id AS b FROM staff AS a CROSS JOIN staff AS b WHERE a.id < b.id AND a.pay > b.pay;

--- each of a list
SELECT id, tag FROM matches ARRAY JOIN tags AS tag;

--- each of a list, and those without any
SELECT id, tag, place_of FROM matches LEFT ARRAY JOIN tags AS tag, arrayEnumerate(tags) AS place_of;

--- each of a list as a function
SELECT id, arrayJoin(tags) AS tag FROM matches WHERE id < 20;

--- lambdas over lists
SELECT id, arrayMap(x -> upper(x), tags) AS a, arrayFilter((x, i) -> i % 2 = 1, tags, arrayEnumerate(tags)) AS b, arrayCount(x -> x = 'cup', tags) AS c, arrayExists(x -> x LIKE 'f%', tags) AS d,
    arraySort(x -> -length(x), tags) AS e, arrayFold((acc, x) -> acc + length(x), tags, toUInt64(0)) AS f, arrayReduce('max', arrayMap(x -> length(x), tags)) AS g, arrayCumSum(arrayMap(x -> 1, tags)) AS h FROM matches;

--- lambdas over maps
SELECT id, mapApply((k, v) -> (upper(k), v * 2), counts) AS a, mapFilter((k, v) -> v > 10, counts) AS b, mapContains(counts, 'shots') AS c, arraySum(mapValues(counts)) AS d FROM matches;

--- lists that are made and changed
SELECT range(5) AS a, arrayConcat([1], [2, 3]) AS b, arraySlice([1, 2, 3, 4], 2, 2) AS c, arrayReverse([1, 2]) AS d, arrayDistinct([1, 1, 2]) AS e, arrayUniq([1, 1]) AS f, has([1, 2], 2) AS g, indexOf(['a', 'b'], 'b') AS h,
    arrayFlatten([[1], [2, 3]]) AS i, arrayZip([1, 2], ['a', 'b']) AS j, splitByChar(',', 'a,b,,c') AS k, arrayStringConcat(['a', 'b'], '-') AS l, arrayElement([1, 2], -1) AS m, arrayIntersect([1, 2], [2, 3]) AS n,
    arrayDifference([1, 4, 9]) AS o, arrayEnumerateUniq(['a', 'b', 'a']) AS p, hasAny([1, 2], [2]) AS q, arrayPartialSort(1, [3, 1, 2])[1] AS r, arrayRotateLeft([1, 2, 3], 1) AS s, empty([]) AS t;

--- the newest of each
SELECT id, version, price FROM versions FINAL;

--- the newest of each by an aggregate
SELECT id, argMax(price, version) AS price, max(version) AS newest FROM versions GROUP BY id;

--- a part of all rows
SELECT page, count() AS n, sum(seconds) AS seconds FROM visits SAMPLE 1 / 2 GROUP BY page;

--- another part of all rows
SELECT count() AS n, any(_sample_factor) AS factor FROM visits SAMPLE 1 / 10 OFFSET 1 / 2;

--- what is filtered before it is read
SELECT id, team FROM matches PREWHERE team = 'Ajax' WHERE goals > 2;

--- both, one without the other, and what both have
SELECT id, 'both' AS kind FROM staff WHERE id < 4 UNION DISTINCT SELECT id, 'both' FROM staff WHERE id > 2 UNION ALL (SELECT id, 'rest' FROM staff EXCEPT SELECT boss, 'rest' FROM staff) UNION ALL (SELECT id, 'shared' FROM staff INTERSECT SELECT boss, 'shared' FROM staff);

--- one of a query's
SELECT id, name FROM staff WHERE id IN (SELECT boss FROM staff) AND (id, name) NOT IN ((1, 'Ann'));

--- a query that knows its row
SELECT id, name, (SELECT count() FROM staff AS o WHERE o.boss = s.id) AS under, EXISTS (SELECT 1 FROM staff AS o WHERE o.boss = s.id) AS leads FROM staff AS s;

--- all columns but some, and others changed
SELECT * EXCEPT (code, tags, counts, place) REPLACE (fee * 2 AS fee, upper(team) AS team) FROM matches WHERE id < 6;

--- columns by a pattern
SELECT COLUMNS('^i(8|16)$') APPLY(x -> x * 2), id FROM numbers_of_all;

--- all columns, with a function for each
SELECT * APPLY(toString) FROM numbers_of_all;

--- a view
SELECT team, count() AS n FROM finals GROUP BY team;

--- a view of what is given
SELECT id, goals FROM of_team(name = 'Celtic');

--- rows that are written out
SELECT * FROM VALUES('n Int32, t String', (1, 'a'), (2, 'b')) UNION ALL SELECT number, 'n' FROM numbers(3, 2);

--- rows of the server's own tables
SELECT name, type, position FROM system.columns WHERE database = currentDatabase() AND table = 'staff';

--- aggregates with a condition and with others
SELECT team, countIf(goals > 2) AS a, sumIf(fee, is_final) AS b, avgOrNull(weight) AS c, groupUniqArrayIf(side, id < 0) AS d, quantileExact(0.5)(goals) AS e, median(id) AS f, minOrNull(id) AS g, argMin(id, played) AS h,
    sumMap(counts) AS i, minMap(mapKeys(counts), mapValues(counts)).2 AS j, count(DISTINCT side) AS k, stddevPop(id) AS l, corr(id, id) AS m, groupBitXor(id) AS n, sumWithOverflow(toUInt8(id)) AS o FROM matches GROUP BY team;

--- aggregates that are lists
SELECT team, arraySort(groupArray(id)) AS a, groupArraySorted(3)(id) AS b, quantilesExact(0.25, 0.75)(id) AS c, arraySort(groupUniqArray(toString(side))) AS d, topK(1)(team) AS e, groupArrayArray([id]) = groupArray(id) AS f,
    minMaxOrDefault AS g FROM (SELECT *, 1 AS minMaxOrDefault FROM matches) GROUP BY team, g;

--- a crossing of words and numbers
SELECT team, sumMap(map(toString(side), toUInt32(1))) AS sides, histogram(3)(id) AS h, simpleLinearRegression(id, id * 2) AS line FROM matches GROUP BY team;

--- steps of a funnel
SELECT 1 AS id, windowFunnel(86400)(toDateTime(played), side = 'home', side = 'away', side = 'neutral') AS steps, sequenceMatch('(?1)(?2)')(toDateTime(played), side = 'home', side = 'away') AS matched, retention(is_final, goals > 2) AS kept FROM matches;

--- a pivot by hand
SELECT team, sumIf(goals, side = 'home') AS home, sumIf(goals, side = 'away') AS away, sumIf(goals, side = 'neutral') AS neutral FROM matches GROUP BY team;

--- totals beside the groups are not asked for
SELECT team, sum(goals) AS goals FROM matches GROUP BY team WITH TOTALS;

--- texts changed
SELECT id, upper(v) AS a, lowerUTF8(v) AS b, reverseUTF8(v) AS c, substring(v, 2, 3) AS d, substringUTF8(v, -2) AS e, replaceAll(v, 'i', 'I') AS f, replaceRegexpAll(v, '[aeiou]', '<\\0>') AS g, trim(v) AS h, leftPad(v, 6, '.') AS i,
    concat(v, '-', id) AS j, v || '!' AS k, position(v, 'a') AS l, startsWith(v, 'p') AS m, match(v, '^p.*n$') AS n, extract(v, '(\\w+)') AS o, splitByString(' ', v) AS p, base64Encode(v) AS q, format('{1}/{0}', v, 'x') AS r,
    empty(v) AS s, repeat(v, 2) AS t, ifNull(v, 'nothing') AS u, v LIKE '%\\%%' AS w, v ILIKE 'PL%' AS x, initcap(v) AS y FROM texts;

--- digests and hashes
SELECT hex(MD5('a')) AS a, hex(SHA256('a')) AS b, cityHash64('a', 1) AS c, sipHash128('a') = '' AS d, xxHash32('a') AS e, murmurHash3_64('a') AS f, CRC32('a') AS g, hex(sipHash64(1)) AS h, intHash32(7) AS i;

--- days and moments computed
SELECT id, toStartOfMonth(day) AS a, toMonday(day) AS b, toStartOfInterval(played, INTERVAL 6 HOUR) AS c, dateDiff('day', day, toDate('2026-12-31')) AS d, date_trunc('hour', played) AS e, addMonths(day, 1) AS f, toDayOfWeek(day) AS g,
    formatDateTime(played, '%Y-%m-%d %H:%i:%S.%f') AS h, toISOWeek(day) AS i, played + INTERVAL 1 MILLISECOND AS j, toYYYYMM(day) AS k, toDate(shown) AS l, toStartOfDay(shown) AS m, toUnixTimestamp64Micro(played) AS n, day + 1 AS o,
    far - INTERVAL 1 DAY AS p, age('month', day, toDate('2026-12-31')) AS q, dateName('month', day) AS r, toStartOfFifteenMinutes(played) AS s, makeDate(2026, 2, 28) AS t, subtractWeeks(played, 2) AS u, toLastDayOfWeek(day) AS w FROM matches;

--- texts that are read as moments
SELECT parseDateTime('2026-02-03 04:05', '%Y-%m-%d %H:%i', 'UTC') AS a, parseDateTimeBestEffort('3 Feb 2026 04:05:06+02:00', 'UTC') AS b, parseDateTime64BestEffort('2026-02-03T04:05:06.789Z', 3, 'UTC') AS c, toDate('2026-02-03') AS d,
    toDateOrNull('nonsense') AS e, toDateTimeOrZero('nonsense', 'UTC') AS f, fromUnixTimestamp64Milli(1770000000123, 'UTC') AS g, snowflakeIDToDateTime(7204436857747984384, 0, 'UTC') AS h, toDateTime(1770000000, 'UTC') AS i;

--- numbers computed
SELECT number AS id, intDiv(number, 2) AS a, modulo(number, 3) AS b, pow(2, number) AS c, sqrt(number) AS d, exp(number) AS e, log(number) AS f, round(number / 7, 3) AS g, floor(number / 3) AS h, ceil(number / 3) AS i, bitAnd(number, 5) AS j,
    gcd(number + 1, 12) AS k, sin(number) AS l, number / 3 AS m, toInt8(-number) AS n, bitShiftLeft(1, number) AS o, cbrt(number) AS p, sign(-number) AS q, roundBankers(number / 2) AS r, lgamma(number + 1) AS s, greatest(number, 3) AS t,
    factorial(number) AS u, pi() AS w, moduloOrZero(number, 0) AS x, toUInt256(pow(2, number)) AS y, divideDecimal(toDecimal64(number, 2), toDecimal64(3, 2)) AS z FROM numbers(12);

--- one of several
SELECT id, if(goals > 2, 'many', 'few') AS a, multiIf(goals IS NULL, 'none', goals = 0, 'zero', 'some') AS b, CASE side WHEN 'home' THEN 1 WHEN 'away' THEN 2 ELSE 3 END AS c, CASE WHEN is_final THEN fee END AS d, coalesce(rival, 'nobody') AS e,
    nullIf(goals, 0) AS f, assumeNotNull(goals) AS g, transform(toString(side), ['home', 'away'], ['h', 'a'], '?') AS h, least(goals, 3) AS i, isNull(code) AS j, goals IS NOT DISTINCT FROM NULL AS k FROM matches;

--- conversions that fail with nothing
SELECT toInt32OrNull('x') AS a, toInt32OrZero('x') AS b, toFloat64OrNull('1e5') AS c, accurateCastOrNull(300, 'UInt8') AS d, toUInt8OrDefault('x', 7::UInt8) AS e, toDecimal64OrNull('1.5', 2) AS f, toDecimalString(1.25, 3) AS g, reinterpretAsInt32('a') AS h,
    toTypeName(1.5) AS i, CAST('[1, 2]' AS Array(Int8)) AS j, CAST(([1, 2], ['a', 'b']) AS Map(Int8, String)) AS k, CAST('(1, \'x\')' AS Tuple(Int8, String)) AS l, '1'::Int32 AS m, toInt64('7') = 7 AS n;

--- addresses and links
SELECT domain('https://user@example.org:80/a/b?q=1#f') AS a, path('https://example.org/a/b?q=1') AS b, extractURLParameter('https://x.org/?q=1&r=2', 'r') AS c, decodeURLComponent('a%20b') AS d, topLevelDomain('https://example.org') AS e,
    protocol('https://x') AS f, IPv4CIDRToRange(toIPv4('10.1.2.3'), 8) AS g, isIPAddressInRange('10.1.2.3', '10.0.0.0/8') AS h, geohashEncode(-5.6, 42.6, 8) AS i, greatCircleDistance(0, 0, 1, 1) AS j, bar(3, 0, 6, 4) AS k;

--- a statement with comments, of every kind
SELECT id, name /* not ; a second one */ FROM staff -- nor here ;
# nor here ;
WHERE name != '--' AND name != '/*' AND id < 3 #! nor here
;

--- a statement in parentheses
(SELECT id, name FROM staff WHERE id < 3) UNION ALL (SELECT id, name FROM staff WHERE id > 6);

--- many rows
SELECT number AS id, concat('row ', toString(number)) AS t, if(number % 3 = 0, NULL, number) AS m FROM numbers(5000);
