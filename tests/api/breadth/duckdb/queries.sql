-- Statements without parameters: endpoints. breadth.rs says how this is read.

--- numbers in all their functions
SELECT id, abs(-id) AS a, id % 7 AS b, id // 7 AS c, id / 7 AS d, -id // 7 AS e, (-id) % 7 AS f, sign(id - 30) AS g, gcd(id, 12) AS h, power(id, 2) AS i, sqrt(id) AS j, exp(id / 10) AS k, ln(id) AS l,
    round(id / 7, 3) AS m, floor(id / 7) AS n, ceil(id / 7) AS o, trunc(id / 7) AS p, bit_count(id) AS q, id << 3 AS r, xor(id, 5) AS s, factorial(id % 20) AS t FROM matches;

--- sums of each kind of number
SELECT sum(id) AS a, sum(views) AS b, sum(fee) AS c, sum(weight) AS d, sum(ratio) AS e, avg(id) AS f, avg(fee) AS g, min(views) AS h, max(fee) AS i, count(goals) AS j, count(*) AS k, product(1 + id / 100) AS l,
    sum(id::UBIGINT) AS m, sum(views::HUGEINT * 1000000000) AS n, bit_xor(id) AS o, bool_and(is_final) AS p FROM matches;

--- statistics
SELECT team, median(goals) AS a, mode(side) AS b, quantile_cont(fee, 0.9) AS c, quantile_disc(fee, 0.5) AS d, stddev_samp(id) AS e, var_pop(id) AS f, corr(id, goals) AS g, approx_count_distinct(1) AS h,
    arg_max(day, id) AS i, arg_min(team, id) AS j, kurtosis(id) AS k, entropy(side) AS l, count(DISTINCT side) AS m FROM matches GROUP BY team;

--- texts in all their functions
SELECT id, upper(team) AS a, lower(team) AS b, length(team) AS c, reverse(team) AS d, substring(team, 2, 3) AS e, left(team, 2) AS f, right(team, 2) AS g, lpad(id::VARCHAR, 4, '0') AS h, replace(team, 'a', 'A') AS i,
    split_part('a-b-c', '-', 2) AS j, concat_ws('/', team, rival) AS k, position('a' IN team) AS l, team || coalesce(rival, '?') AS m, format('{:05d} {}', id, team) AS n, printf('%.2f', id / 3) AS o,
    regexp_replace(team, '[aeiou]', '*', 'g') AS p, regexp_extract(team, '([A-Z])(.)', 2) AS q, strip_accents(team) AS r, ascii(team) AS s, team[1] AS t, team[2 : 3] AS u, starts_with(team, 'A') AS v FROM matches;

--- texts beside patterns
SELECT id, team LIKE '%a_' AS a, team ILIKE 'É%' AS b, team SIMILAR TO '[A-C].*' AS c, team GLOB 'A*' AS d, regexp_matches(team, '^[AB]') AS e, team ~ 'Ajax' AS f, team NOT LIKE 'A%' AS g, levenshtein(team, 'Ajax') AS h,
    jaro_winkler_similarity(team, 'Celtic') AS i, contains(team, 'x') AS j FROM matches;

--- hashes and encodings
SELECT id, md5(team) AS a, sha256(team) AS b, to_base64(encode(team)) AS c, hex(team) AS d, url_encode(team) AS e, bin(id) AS f, to_base(id, 36) AS g, unicode(team) AS h FROM matches;

--- days in all their functions
SELECT id, extract(year FROM day) AS a, extract(isodow FROM day) AS b, date_part('week', day) AS c, date_trunc('month', day) AS d, last_day(day) AS e, day + 7 AS f, day + INTERVAL '1 month' AS g, dayname(day) AS h,
    monthname(day) AS i, date_diff('week', DATE '2026-01-01', day) AS j, make_date(2026, 2, 1 + id % 28) AS k, time_bucket(INTERVAL '7 days', day) AS l, julian(day) AS m, age(day, DATE '2025-12-31') AS n FROM matches;

--- moments in a zone
SELECT id, played AT TIME ZONE 'Europe/Berlin' AS berlin, date_trunc('day', played AT TIME ZONE 'Asia/Tokyo') AS tokyo, extract(hour FROM played AT TIME ZONE 'America/New_York') AS hour, date_trunc('hour', played) AS hours,
    epoch(played) AS seconds, epoch_us(played) AS micros, make_timestamptz(2026, 3, 29, 2, 30, 0.5, 'Europe/Berlin') AS gap FROM matches;

--- groups of all
SELECT team, side, count(*) AS n, sum(fee) AS fee FROM matches GROUP BY ALL;

--- groups of groups
SELECT team, side, grouping(team, side) AS level, count(*) AS n FROM matches GROUP BY ROLLUP (team, side);

--- groups in sets
SELECT team, side, is_final, count(*) AS n FROM matches GROUP BY GROUPING SETS ((team), (side, is_final), ());

--- a cube with a filter
SELECT side, is_final, count(*) FILTER (WHERE goals > 2) AS n, sum(goals) FILTER (goals > 4) AS m FROM matches GROUP BY CUBE (side, is_final) HAVING count(*) > 5;

--- lists of groups
SELECT team, list(id ORDER BY id DESC) AS ids, string_agg(DISTINCT side::VARCHAR, ',' ORDER BY side::VARCHAR) AS sides, histogram(goals) AS histogram, list_sort(list(DISTINCT goals)) AS goals, first(id ORDER BY id) AS a,
    last(id ORDER BY id) AS b, max(id, 2) AS top FROM matches GROUP BY team;

--- windows of their kinds
SELECT id, row_number() OVER (ORDER BY id) AS a, rank() OVER (ORDER BY team) AS b, dense_rank() OVER (ORDER BY team) AS c, percent_rank() OVER (ORDER BY id) AS d, cume_dist() OVER (ORDER BY id) AS e,
    ntile(7) OVER (ORDER BY id) AS f, lag(goals, 2, -1) OVER (ORDER BY id) AS g, lead(team) OVER (ORDER BY id) AS h, first_value(id) OVER w AS i, last_value(id) OVER w AS j, nth_value(id, 2) OVER w AS k,
    lag(goals IGNORE NULLS) OVER (ORDER BY id) AS l FROM matches WINDOW w AS (PARTITION BY team ORDER BY id);

--- windows in frames
SELECT id, sum(fee) OVER (ORDER BY id ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS a, avg(goals) OVER (ORDER BY day RANGE BETWEEN INTERVAL '3 days' PRECEDING AND INTERVAL '1 day' FOLLOWING) AS b,
    count(*) OVER (ORDER BY team GROUPS 1 PRECEDING) AS c, sum(id) OVER (ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING EXCLUDE CURRENT ROW) AS d,
    count(DISTINCT team) OVER (ORDER BY id ROWS 3 PRECEDING) AS e, list(id) OVER (ORDER BY id ROWS 1 PRECEDING) AS f FROM matches;

--- rows that qualify
SELECT id, team, goals FROM matches QUALIFY row_number() OVER (PARTITION BY team ORDER BY goals DESC NULLS LAST, id) <= 2;

--- the newest of each
SELECT DISTINCT ON (team) team, id, day FROM matches ORDER BY team, day DESC;

--- a pivot
SELECT * FROM matches PIVOT (count(*) AS n, sum(goals) AS goals FOR side IN ('home', 'away') GROUP BY team);

--- columns made rows
SELECT * FROM (SELECT id, goals::INTEGER AS goals, id * 2 AS twice FROM matches) UNPIVOT (value FOR name IN (goals, twice));

--- columns made rows, NULL among them
SELECT * FROM (SELECT id, goals::INTEGER AS goals, id * 2 AS twice FROM matches) UNPIVOT INCLUDE NULLS (value FOR name IN (goals, twice));

--- the price that was at the time
SELECT o.id, o.item, o.n, p.price, p.since, o.n * p.price AS total FROM orders AS o ASOF JOIN prices AS p ON o.item = p.item AND o.placed >= p.since;

--- the price that was at the time, or none
SELECT o.id, p.price FROM orders AS o ASOF LEFT JOIN prices AS p ON o.item = p.item AND o.placed >= p.since;

--- joins of their kinds
SELECT a.id, a.name, b.name AS boss, c.n FROM staff AS a LEFT JOIN staff AS b ON b.id = a.boss CROSS JOIN (SELECT count(*) AS n FROM staff) AS c;

--- joins that keep both sides
SELECT coalesce(a.id, b.id) AS id, a.name, b.goals FROM staff AS a FULL JOIN (SELECT id, goals FROM matches WHERE id BETWEEN 5 AND 9) AS b ON a.id = b.id;

--- rows that have a partner, and rows that have none
SELECT id, 'semi' AS kind FROM staff SEMI JOIN roads ON staff.id = roads.origin UNION ALL SELECT id, 'anti' FROM staff ANTI JOIN roads ON staff.id = roads.origin;

--- rows beside rows by their place
SELECT * FROM (SELECT id, name FROM staff ORDER BY id) AS s POSITIONAL JOIN (SELECT km FROM roads ORDER BY km) AS r;

--- lists made rows
SELECT id, unnest(tags) AS tag, generate_subscripts(tags, 1) AS place FROM matches WHERE tags IS NOT NULL;

--- structs made columns
SELECT id, unnest(seat) FROM matches WHERE seat IS NOT NULL;

--- a hierarchy
WITH RECURSIVE tree AS (SELECT id, name, 1 AS depth, [name] AS path FROM staff WHERE boss IS NULL UNION ALL SELECT s.id, s.name, t.depth + 1, list_append(t.path, s.name) FROM staff AS s JOIN tree AS t ON s.boss = t.id)
SELECT id, name, depth, path, array_to_string(path, ' > ') AS told FROM tree;

--- ways through a circle
WITH RECURSIVE ways (origin, target, km, path) AS (SELECT origin, target, km::DECIMAL(12, 3), [origin, target] FROM roads UNION ALL SELECT w.origin, r.target, (w.km + r.km)::DECIMAL(12, 3), list_append(w.path, r.target)
    FROM ways AS w JOIN roads AS r ON w.target = r.origin WHERE NOT list_contains(w.path, r.target)) SELECT origin, target, min(km) AS km, count(*) AS n FROM ways GROUP BY ALL;

--- numbers of Fibonacci
WITH RECURSIVE f AS (SELECT 1 AS n, 0::HUGEINT AS a, 1::HUGEINT AS b UNION ALL SELECT n + 1, b, a + b FROM f WHERE n < 150) SELECT n, a FROM f;

--- a table expression that is kept
WITH a AS MATERIALIZED (SELECT id, goals FROM matches), b AS NOT MATERIALIZED (SELECT sum(goals) AS s FROM a) SELECT a.id, a.goals / b.s AS share FROM a, b;

--- sets
SELECT team, 'all' AS kind FROM matches UNION ALL (SELECT rival, 'except' FROM matches EXCEPT SELECT 'Ajax', 'except') UNION (SELECT team, 'both' FROM matches INTERSECT SELECT rival, 'both' FROM matches);

--- sets that count
SELECT goals FROM matches WHERE id < 40 EXCEPT ALL SELECT goals FROM matches WHERE id > 40;

--- sets by the names of their columns
SELECT id, name FROM staff UNION ALL BY NAME SELECT 'other' AS name, 100 AS id, 1.5 AS pay;

--- columns by what they are called
SELECT id, COLUMNS('^(goals|views)$') FROM matches;

--- all columns but some, some of them changed
SELECT * EXCLUDE (tags, notes, seat, played) REPLACE (goals + 1 AS goals) FROM matches;

--- a column that another one uses
SELECT id, goals * 2 AS twice, twice + 1 AS more FROM matches WHERE twice > 4;

--- lambda functions
SELECT id, list_transform([1, 2, id], lambda x: x * 2) AS a, list_filter([1, 2, id], lambda x: x % 2 = 0) AS b, list_reduce([1, 2, id], lambda x, y: x + y) AS c, list_transform(tags, lambda t, i: coalesce(t, '?') || i) AS d FROM matches;

--- comprehensions of lists
SELECT id, [x * x FOR x IN range(id % 5) IF x <> 2] AS squares, [upper(t) FOR t IN tags] AS tags FROM matches;

--- lists in all their functions
SELECT id, tags[1] AS a, tags[-2] AS b, tags[1 : 2] AS c, len(tags) AS d, list_contains(tags, 't1') AS e, list_distinct([1, 1, id]) <> [] AS f, list_reverse_sort([1, id, 3]) AS g, flatten([[1], [id]]) AS h,
    list_zip([1, 2], ['a', 'b']) AS i, list_aggregate([1, id], 'sum') AS j, list_sum([1.5, 2.25]) AS k, list_position([1, id], id) AS l, array_slice([1, 2, 3, 4], 2, 3) AS m, list_concat([1], [2, NULL]) AS n,
    [1, 2] && [2, 3] AS o, list_where([1, 2, 3], [true, false, true]) AS p, range(1, id % 7) AS q FROM matches;

--- a document in all its functions
SELECT id, notes -> '$.list[1]' AS a, json_extract_string(notes, 'deep') AS b, json_keys(notes) AS c, json_type(notes, '$.list') AS d, json_object('k', id, 'l', [goals]) AS e, json_merge_patch(notes, '{"n": null}') AS f,
    json_exists(notes, '$.deep') AS g, json_transform(notes, '{"n": "INTEGER"}') AS h, notes ->> ['n', '$.deep.er'] AS i, to_json({'a': fee}) AS j, json_contains(notes, '1') AS k, row_to_json({'a': id}) AS l FROM matches;

--- rows of a document
SELECT m.id, e.key, e.value, e.type, e.atom FROM matches AS m, json_each(m.notes) AS e;

--- members of a document at all depths
SELECT fullkey, type, atom FROM json_tree('{"a": [1, {"b": null}], "c": "x"}');

--- cases and what is NULL
SELECT id, CASE WHEN goals > 3 THEN 'many' WHEN goals IS NULL THEN 'unknown' ELSE 'few' END AS a, coalesce(rival, team) AS b, nullif(goals, 2) AS c, goals IS DISTINCT FROM 3 AS d, if(is_final, 1, 0) AS e, ifnull(fee, 0) AS f,
    greatest(goals, 2) AS g, least(goals, NULL, 2) AS h, goals BETWEEN 1 AND 3 AS i, goals IN (1, NULL) AS j, try_cast(team AS INTEGER) AS k, TRY(1 // (id - 1)) AS l FROM matches;

--- subqueries of their kinds
SELECT id, (SELECT max(pay) FROM staff) AS a, EXISTS (SELECT 1 FROM staff AS s WHERE s.id = m.id) AS b, id IN (SELECT boss FROM staff) AS c, id > ALL (SELECT id FROM staff) AS d, id = ANY (SELECT boss FROM staff) AS e,
    (SELECT list(name ORDER BY name) FROM staff AS s WHERE s.boss = m.id) AS f, ARRAY (SELECT id FROM staff WHERE id < 3 ORDER BY id) AS g FROM matches AS m;

--- values by themselves
VALUES (1, 'a'), (2, NULL);

--- a table by its name alone
TABLE staff;

--- rows first
SELECT * FROM (FROM staff SELECT id, pay WHERE pay > 3000);

--- rows without a list of columns
SELECT * FROM (FROM staff);

--- an order and a limit of its own
SELECT id, team FROM matches ORDER BY team DESC, id LIMIT 7 OFFSET 3;

--- an order of all columns, a share of the rows
SELECT team, id FROM matches ORDER BY ALL LIMIT 10%;

--- where NULL comes in an order
SELECT id, goals, row_number() OVER (ORDER BY goals NULLS FIRST, id) AS a, row_number() OVER (ORDER BY goals DESC NULLS LAST, id) AS b FROM matches;

--- all rows of a sample
SELECT id FROM matches USING SAMPLE 100 PERCENT (bernoulli);

--- a sample that is larger than its table
SELECT id FROM matches USING SAMPLE reservoir(1000 ROWS) REPEATABLE (7);

--- a view, and a macro of the seller's own
SELECT t.team, t.goals, doubled(t.goals) AS twice FROM totals AS t;

--- a view of files is its owner's business
SELECT 1 AS id, n > 0 AS found FROM files;

--- series
SELECT r.range AS a, g.generate_series AS b FROM range(5) AS r JOIN generate_series(1, 9, 2) AS g ON g.generate_series > r.range;

--- series of days
SELECT d::DATE AS day, extract(isodow FROM d) AS dow FROM generate_series(DATE '2026-02-25', DATE '2026-03-05', INTERVAL '1 day') AS g (d);

--- names with a schema and a database
SELECT breadth.staff.id, memory.breadth.staff.name FROM memory.breadth.staff;

--- comments and a semicolon
SELECT /* a comment with ; and 'a quote */ id -- and another: ?
FROM staff -- at its end
;

--- numbers that are written in other ways
SELECT 1_000_000 AS a, 1e3 AS b, .5 AS c, 5.0 AS d, -1 AS e, 1e-3 AS f, 12345678901234567890123456789012345678 AS g;

--- columns in the order of an alias before it
SELECT a: id, b: name FROM staff;

--- constants of the session
SELECT 1 AS id, current_schema() AS a, current_database() AS b, typeof(1.5) AS c, typeof([1]) AS d, pi() AS e, version() AS f;

--- names of duckdb's own tables
SELECT table_name, estimated_size FROM (SELECT table_name, 1 AS estimated_size FROM information_schema.tables WHERE table_schema = 'breadth');
