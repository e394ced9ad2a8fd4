-- Statements without parameters: endpoints. breadth.rs says how this is read.

--- numbers in all their functions
SELECT id, abs(-id) AS a, id % 7 AS b, id DIV 7 AS c, id / 7 AS d, -id DIV 7 AS e, -id % 7 AS f, sign(id - 30) AS g, pmod(-id, 12) AS h, power(id, 2) AS i, sqrt(id) AS j, round(id / 7, 3) AS m, floor(id / 7) AS n, ceil(id / 7) AS o,
    bit_count(id) AS q, shiftleft(id, 3) AS r, id ^ 5 AS s, factorial(id % 20) AS t, bround(2.5) AS u, width_bucket(id, 0, 60, 6) AS v, greatest(id, 30) AS w, hex(id) AS x, conv('ff', 16, 10) AS y, try_divide(id, id % 2) AS z FROM matches;

--- sums of each kind of number
SELECT sum(id) AS a, sum(views) AS b, sum(fee) AS c, avg(id) AS f, avg(fee) AS g, min(views) AS h, max(fee) AS i, count(goals) AS j, count(*) AS k, bit_xor(id) AS o, bool_and(is_final) AS p, every(is_final) AS q, any(is_final) AS r,
    try_sum(goals) AS s, count_if(goals > 2) AS t, sum(goals) AS u FROM matches;

--- statistics
SELECT team, percentile_cont(0.5) WITHIN GROUP (ORDER BY goals) AS a, mode(side) AS b, percentile(fee, 0.5) AS c, stddev_samp(id) AS e, var_pop(id) AS f, corr(id, goals) AS g, approx_count_distinct(1) AS h, max_by(day, id) AS i,
    min_by(team, id) AS j, kurtosis(id) AS k, skewness(id) AS l, count(DISTINCT side) AS m, regr_slope(goals, id) AS n, median(goals) AS o FROM matches GROUP BY team;

--- texts in all their functions
SELECT id, upper(team) AS a, lower(team) AS b, length(team) AS c, reverse(team) AS d, substring(team, 2, 3) AS e, left(team, 2) AS f, right(team, 2) AS g, lpad(CAST(id AS STRING), 4, '0') AS h, replace(team, 'a', 'A') AS i,
    split_part('a-b-c', '-', 2) AS j, concat_ws('/', team, rival) AS k, position('a' IN team) AS l, team || coalesce(rival, '?') AS m, format_string('%05d %s', id, team) AS n, regexp_replace(team, '[aeiou]', '*') AS o,
    regexp_extract(team, '([A-Z])(.)', 2) AS p, ascii(team) AS s, startswith(team, 'A') AS v, initcap('one two') AS w, translate(team, 'abc', 'xyz') AS x, soundex(team) AS y, levenshtein(team, 'Ajax') AS z, overlay(team PLACING 'Z' FROM 1) AS aa,
    trim(BOTH 'x' FROM 'xxyxx') AS bb, substring_index('a.b.c', '.', 2) AS cc, format_number(1234567.891, 2) AS dd FROM matches;

--- texts beside patterns
SELECT id, team LIKE '%a_' AS a, team ILIKE 'É%' AS b, team RLIKE '[A-C].*' AS c, regexp_like(team, '^[AB]') AS e, team LIKE ANY ('A%', 'B%') AS f, team NOT LIKE 'A%' AS g, contains(team, 'x') AS j, team LIKE '!%' ESCAPE '!' AS k,
    regexp_count(team, '[a-z]') AS l, regexp_substr(team, '[a-z]+') AS m FROM matches;

--- hashes and encodings
SELECT id, md5(team) AS a, sha2(team, 256) AS b, base64(CAST(team AS BINARY)) AS c, hex(team) AS d, url_encode(team) AS e, bin(id) AS f, crc32(team) AS g, hash(team) AS h, xxhash64(team) AS i FROM matches;

--- days in all their functions
SELECT id, extract(YEAR FROM day) AS a, dayofweek(day) AS b, weekofyear(day) AS c, trunc(day, 'MONTH') AS d, last_day(day) AS e, day + 7 AS f, day + INTERVAL 1 MONTH AS g, date_format(day, 'EEEE') AS h, datediff(day, DATE '2026-01-01') AS j,
    make_date(2026, 2, 1 + id % 28) AS k, months_between(day, DATE '2025-12-31') AS m, next_day(day, 'MON') AS n, quarter(day) AS o, dayname(day) AS p, timestampdiff(WEEK, DATE '2026-01-01', day) AS q FROM matches;

--- moments in a zone
SELECT id, from_utc_timestamp(played, 'Europe/Berlin') AS berlin, date_trunc('DAY', played) AS days, hour(from_utc_timestamp(played, 'America/New_York')) AS hour, date_trunc('HOUR', played) AS hours, unix_timestamp(played) AS seconds,
    unix_micros(played) AS micros, dateadd(HOUR, 5, played) AS later, convert_timezone('UTC', 'Asia/Tokyo', shown) AS tokyo, window(played, '1 hour').start AS slot FROM matches;

--- groups of all
SELECT team, side, count(*) AS n, sum(fee) AS fee FROM matches GROUP BY ALL;

--- groups of groups
SELECT team, side, grouping_id(team, side) AS level, count(*) AS n FROM matches GROUP BY ROLLUP (team, side);

--- groups in sets
SELECT team, side, is_final, count(*) AS n FROM matches GROUP BY GROUPING SETS ((team), (side, is_final), ());

--- a cube with a filter
SELECT side, is_final, count(*) FILTER (WHERE goals > 2) AS n, sum(goals) FILTER (WHERE goals > 4) AS m FROM matches GROUP BY CUBE (side, is_final) HAVING count(*) > 5;

--- lists of groups
SELECT team, sort_array(collect_list(id), false) AS ids, array_join(sort_array(collect_set(side)), ',') AS sides, listagg(DISTINCT side, ',') WITHIN GROUP (ORDER BY side) AS listed, sort_array(collect_set(goals)) AS goals FROM matches GROUP BY team;

--- windows of their kinds
SELECT id, row_number() OVER (ORDER BY id) AS a, rank() OVER (ORDER BY team) AS b, dense_rank() OVER (ORDER BY team) AS c, percent_rank() OVER (ORDER BY id) AS d, cume_dist() OVER (ORDER BY id) AS e, ntile(7) OVER (ORDER BY id) AS f,
    lag(goals, 2, -1S) OVER (ORDER BY id) AS g, lead(team) OVER (ORDER BY id) AS h, first_value(id) OVER w AS i, last_value(id) OVER w AS j, nth_value(id, 2) OVER w AS k, lag(goals) IGNORE NULLS OVER (ORDER BY id) AS l
    FROM matches WINDOW w AS (PARTITION BY team ORDER BY id);

--- windows in frames
SELECT id, sum(fee) OVER (ORDER BY id ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS a, avg(goals) OVER (ORDER BY day RANGE BETWEEN INTERVAL '3' DAY PRECEDING AND INTERVAL '1' DAY FOLLOWING) AS b,
    collect_list(id) OVER (ORDER BY id ROWS 1 PRECEDING) AS f FROM matches;

--- rows that qualify
SELECT id, team, goals FROM (SELECT *, row_number() OVER (PARTITION BY team ORDER BY goals DESC NULLS LAST, id) AS place FROM matches) WHERE place <= 2;

--- a pivot
SELECT * FROM (SELECT team, side, goals FROM matches) PIVOT (count(*) AS n, sum(goals) AS goals FOR side IN ('home', 'away'));

--- columns made rows
SELECT * FROM (SELECT id, CAST(goals AS INT) AS goals, id * 2 AS twice FROM matches) UNPIVOT (value FOR name IN (goals, twice));

--- columns made rows, NULL among them
SELECT * FROM (SELECT id, CAST(goals AS INT) AS goals, id * 2 AS twice FROM matches) UNPIVOT INCLUDE NULLS (value FOR name IN (goals, twice));

--- columns made rows by hand
SELECT id, name, value FROM matches LATERAL VIEW stack(2, 'goals', CAST(goals AS INT), 'twice', id * 2) AS name, value;

--- joins of their kinds
SELECT a.id, a.name, b.name AS boss, c.n FROM staff AS a LEFT JOIN staff AS b ON b.id = a.boss CROSS JOIN (SELECT count(*) AS n FROM staff) AS c;

--- joins that keep both sides
SELECT coalesce(a.id, b.id) AS id, a.name, b.goals FROM staff AS a FULL JOIN (SELECT id, goals FROM matches WHERE id BETWEEN 5 AND 9) AS b ON a.id = b.id;

--- rows that have a partner, and rows that have none
SELECT id, 'semi' AS kind FROM staff LEFT SEMI JOIN roads ON staff.id = roads.origin UNION ALL SELECT id, 'anti' FROM staff LEFT ANTI JOIN roads ON staff.id = roads.origin;

--- joins by names
SELECT id, name, goals FROM staff JOIN matches USING (id);

--- rows beside rows of another one
SELECT s.id, s.name, l.km FROM staff AS s, LATERAL (SELECT max(km) AS km FROM roads WHERE origin = s.id) AS l;

--- lists made rows
SELECT id, explode(tags) AS tag FROM matches WHERE tags IS NOT NULL;

--- lists made rows with their places
SELECT id, pos, col FROM matches LATERAL VIEW OUTER posexplode(tags) AS pos, col;

--- structs made columns
SELECT id, inline(array(seat)) FROM matches WHERE seat IS NOT NULL;

--- lists in all their functions
SELECT id, size(tags) AS a, array_contains(tags, 't1') AS b, transform(array(1, 2, id), x -> x * 2) AS c, filter(array(1, 2, 3), x -> x > 1) AS d, aggregate(array(1, 2, id), 0, (acc, x) -> acc + x) AS e, slice(array(1, 2, 3), 2, 2) AS f,
    array_distinct(array(1, 1, 2)) AS g, flatten(array(array(1), array(2))) AS h, arrays_zip(array(1, 2), array('a', 'b')) AS i, sequence(1, 5, 2) AS j, exists(tags, x -> x IS NULL) AS k, array_position(tags, 'a, "b"') AS l,
    zip_with(array(1, 2), array(3, 4), (x, y) -> x + y) AS m, map_filter(counts, (k, v) -> v > 2) AS n, transform_values(counts, (k, v) -> v + 1) AS o FROM matches;

--- a hierarchy
WITH RECURSIVE tree AS (SELECT id, name, 1 AS depth, CAST(name AS STRING) AS path FROM staff WHERE boss IS NULL UNION ALL SELECT s.id, s.name, t.depth + 1, t.path || ' > ' || s.name FROM staff AS s JOIN tree AS t ON s.boss = t.id)
SELECT id, name, depth, path FROM tree;

--- a table expression
WITH a AS (SELECT id, goals FROM matches), b AS (SELECT sum(goals) AS s FROM a) SELECT a.id, a.goals / b.s AS share FROM a, b;

--- a table expression within another one
WITH a AS (WITH b AS (SELECT id FROM staff) SELECT id + 1 AS id FROM b) SELECT * FROM a;

--- sets
SELECT team, 'all' AS kind FROM matches UNION ALL (SELECT rival, 'except' FROM matches EXCEPT SELECT 'Ajax', 'except') UNION (SELECT team, 'both' FROM matches INTERSECT SELECT rival, 'both' FROM matches);

--- sets that count
SELECT goals FROM matches WHERE id < 40 EXCEPT ALL SELECT goals FROM matches WHERE id > 40;

--- rows that are written out
SELECT * FROM VALUES (1, 'a'), (2, NULL) AS v (id, name);

--- rows without a SELECT
VALUES (1, 'a'), (2, 'b');

--- a table by its name
TABLE staff;

--- steps after one another
SELECT id, team FROM matches |> WHERE id < 10 |> EXTEND id * 2 AS twice |> SELECT id, twice;

--- all columns but some
SELECT * EXCEPT (seat, counts, tags) FROM matches;

--- questions within questions
SELECT id, name, (SELECT count(*) FROM matches WHERE goals = staff.id) AS n, EXISTS (SELECT 1 FROM roads WHERE origin = staff.id) AS has_road FROM staff WHERE id IN (SELECT origin FROM roads) OR pay > (SELECT max(km) FROM roads);

--- a view
SELECT * FROM totals;

--- a function of the seller's own
SELECT id, doubled(id) AS twice FROM staff;

--- a function of the seller's own that makes rows
SELECT * FROM of_team('Ajax');

--- rows of a function
SELECT id, id * id AS square FROM range(5, 10);

--- NULL first and last
SELECT id, goals, row_number() OVER (ORDER BY goals ASC NULLS LAST, id) AS last, row_number() OVER (ORDER BY goals DESC NULLS FIRST, id) AS first FROM matches;

--- an order and a limit of its own
SELECT id, day FROM matches ORDER BY day DESC, id LIMIT 7;

--- an order and a limit from somewhere on
SELECT id, day FROM matches ORDER BY id LIMIT 5 OFFSET 10;

--- names in backticks
SELECT `id` AS `Id of it`, `a`.`team` AS `te``am` FROM `matches` AS `a`;

--- names that are qualified
SELECT m.id, breadth.staff.name FROM spark_catalog.breadth.matches AS m JOIN breadth.staff ON breadth.staff.id = m.id;

--- comments everywhere
/* before */ SELECT /* within; */ id -- behind; 'it
, name /* -- */ FROM staff -- at the end;

--- a hint
SELECT /*+ BROADCAST(s) */ m.id, s.name FROM matches AS m JOIN staff AS s ON m.id = s.id;

--- conditions
SELECT id, CASE WHEN goals > 3 THEN 'many' WHEN goals IS NULL THEN 'unknown' ELSE 'few' END AS a, if(goals > 2, 1, 0) AS b, coalesce(goals, -1) AS c, nullif(goals, 0) AS d, nvl2(rival, 'yes', 'no') AS e, decode(side, 'home', 1, 'away', 2, 0) AS f,
    goals <=> NULL AS g, goals IS DISTINCT FROM 2 AS h, goals BETWEEN 1 AND 3 AS i, team IN ('Ajax', 'Celtic') AS j, ifnull(fee, 0) AS k, zeroifnull(goals) AS l FROM matches;

--- casts that do not fail
SELECT id, try_cast(team AS INT) AS a, try_to_number('1,234', '9,999') AS b, try_add(id, 2147483647) AS c, try_to_timestamp('no') AS d, CAST(id AS STRING) AS e, CAST(fee AS DOUBLE) AS f, id::DECIMAL(5, 1) AS g, CAST('1e3' AS DOUBLE) AS h FROM matches;

--- gaps in a series
SELECT s.day, coalesce(m.n, 0) AS n FROM (SELECT explode(sequence(DATE '2026-02-20', DATE '2026-03-05')) AS day) AS s LEFT JOIN (SELECT day, count(*) AS n FROM matches GROUP BY day) AS m ON m.day = s.day;

--- a share of all
SELECT team, sum(fee) AS fee, CAST(100 * sum(fee) / sum(sum(fee)) OVER () AS DECIMAL(9, 4)) AS percent FROM matches GROUP BY team;

--- a column twice
SELECT id, id AS again, id + 0 AS thrice FROM staff;

--- words that are reserved elsewhere
SELECT id AS `order`, name AS `user`, pay AS `table` FROM staff;

--- a sample that is the same each time
SELECT id FROM matches TABLESAMPLE (100 PERCENT);

--- sessions of events
SELECT id, sum(is_new) OVER (ORDER BY id) AS session FROM (SELECT id, CASE WHEN unix_timestamp(played) - lag(unix_timestamp(played)) OVER (ORDER BY id) < 62000 THEN 0 ELSE 1 END AS is_new FROM matches);
