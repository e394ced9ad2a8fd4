-- How statements are put together. breadth.rs says how this is read.

--- a table, and nothing else
TABLE staff;

--- all columns of the widest table
SELECT * FROM matches;

--- values alone
VALUES (1, 'a', NULL), (2, 'b', 1.50), (3, NULL, 2);

--- values as a table, and rows as values
SELECT v.id, v.name, v FROM (VALUES (1, 'a'), (2, NULL)) AS v (id, name);

--- in parentheses, with a semicolon and comments
((SELECT id /* one /* two */ ' */ FROM staff -- it's :nothing
 WHERE true) UNION ALL (VALUES (100))) /* the end */;

--- a statement that ends in a comment
SELECT id, name FROM staff -- and that was all

--- no row
SELECT id, v, n, at, list FROM empty;

--- no row of anything
SELECT id, team, played, tags, notes, seat, ratio FROM matches WHERE false;

--- aggregates of nothing
SELECT count(*) AS a, count(v) AS b, sum(n) AS c, avg(id) AS d, max(at) AS e, string_agg(v, ',') AS f, array_agg(id) AS g, json_agg(v) AS h, bool_and(id > 0) AS i,
    stddev(n) AS j, sum(id) AS k, percentile_cont(0.5) WITHIN GROUP (ORDER BY n) AS l FROM empty;

--- aggregates of all kinds
SELECT team, count(*) AS a, count(DISTINCT goals) AS b, sum(goals) AS c, sum(views) AS d, sum(fee) AS e, sum(ratio) AS f, sum(weight) AS g, avg(goals) AS h,
    avg(weight) AS i, min(played) AS j, max(rival) AS k, bool_or(is_final) AS l, every(is_final) AS m, bit_and(id) AS n, bit_or(id) AS o, bit_xor(id) AS p,
    string_agg(DISTINCT rival, ',' ORDER BY rival) AS q, array_agg(goals ORDER BY id) AS r, min(side) AS s, max(day) AS t FROM matches GROUP BY team;

--- statistics, to the last digit
SELECT count(*) AS a, stddev(goals) AS b, stddev_pop(goals) AS c, variance(fee) AS d, var_pop(weight) AS e, corr(goals, id) AS f, covar_pop(goals, id) AS g,
    covar_samp(weight, id) AS h, regr_slope(weight, id) AS i, regr_intercept(weight, id) AS j, regr_r2(weight, id) AS k, regr_count(weight, goals) AS l, regr_avgx(weight,
    id) AS m FROM matches;

--- ordered sets
SELECT team, percentile_cont(0.5) WITHIN GROUP (ORDER BY goals) AS a, percentile_disc(0.25) WITHIN GROUP (ORDER BY played) AS b, percentile_cont(ARRAY[0.1, 0.9]) WITHIN
    GROUP (ORDER BY weight) AS c, mode() WITHIN GROUP (ORDER BY rival) AS d, rank(3) WITHIN GROUP (ORDER BY goals) AS e, cume_dist(3) WITHIN GROUP (ORDER BY goals) AS f,
    percent_rank(2) WITHIN GROUP (ORDER BY goals) AS g, dense_rank(4) WITHIN GROUP (ORDER BY goals DESC) AS h FROM matches GROUP BY team;

--- filtered aggregates
SELECT team, count(*) FILTER (WHERE goals > 2) AS a, sum(fee) FILTER (WHERE is_final IS TRUE) AS b, array_agg(id ORDER BY id) FILTER (WHERE rival IS NULL) AS c
    FROM matches GROUP BY team HAVING count(*) FILTER (WHERE is_final) > 3;

--- grouping sets
SELECT grouping(team, side) AS level, team, side, count(*) AS n, sum(fee) AS fee FROM matches GROUP BY GROUPING SETS ((team, side), (team), ());

--- cubes and rolls of groups
SELECT team, side, is_final, count(*) AS n FROM matches GROUP BY CUBE (team, side), ROLLUP (is_final);

--- groups that are named once
SELECT team, side, count(*) AS n FROM matches GROUP BY DISTINCT ROLLUP (team), ROLLUP (team, side);

--- groups by place and by expression
SELECT date_trunc('month', played), extract(isodow from day) AS weekday, goals % 2 = 0 AS even, count(*) AS n FROM matches GROUP BY 1, 2,
    goals % 2 = 0 HAVING count(*) > 1 ORDER BY 1 DESC NULLS LAST, 2 USING >;

--- ranks in windows
SELECT id, row_number() OVER w AS a, rank() OVER (w) AS b, dense_rank() OVER (PARTITION BY team ORDER BY goals) AS c, percent_rank() OVER w AS d, cume_dist() OVER w AS e,
    ntile(4) OVER (ORDER BY id DESC) AS f, lag(goals, 2, -1::smallint) OVER (ORDER BY id) AS g, lead(team) OVER (ORDER BY id) AS h, first_value(id) OVER w AS i,
    last_value(id) OVER w AS j, nth_value(id, 2) OVER w AS k
FROM matches WINDOW w AS (PARTITION BY side ORDER BY goals DESC NULLS LAST, id);

--- frames of rows, and what they leave out
SELECT id, sum(id) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING EXCLUDE CURRENT ROW) AS a,
    count(*) OVER (ORDER BY goals GROUPS BETWEEN 1 PRECEDING AND CURRENT ROW EXCLUDE TIES) AS b,
    avg(id) OVER (ORDER BY day RANGE BETWEEN interval '3 days' PRECEDING AND interval '1 day' FOLLOWING EXCLUDE GROUP) AS c,
    sum(fee) OVER (ORDER BY id ROWS UNBOUNDED PRECEDING EXCLUDE NO OTHERS) AS d, array_agg(id) OVER (ORDER BY id ROWS 2 PRECEDING) AS e,
    max(weight) OVER (ORDER BY weight RANGE BETWEEN 0.5 PRECEDING AND UNBOUNDED FOLLOWING) AS f, string_agg(team,
    '>') OVER (ORDER BY id ROWS BETWEEN CURRENT ROW AND 2 FOLLOWING) AS g FROM matches WHERE id <= 25;

--- aggregates over windows over groups
SELECT team, sum(goals) AS goals, sum(sum(goals)) OVER (ORDER BY team) AS running, round(100.0 * sum(goals) / sum(sum(goals)) OVER (), 2) AS share FROM matches
    GROUP BY team;

--- the first of each group
SELECT DISTINCT ON (team) team, id, goals FROM matches ORDER BY team, goals DESC NULLS LAST, id;

--- what is there once
SELECT DISTINCT side::text AS side, is_final FROM matches;

--- the best, and those that tie with them
SELECT goals, id FROM matches WHERE goals IS NOT NULL ORDER BY goals DESC FETCH FIRST 3 ROWS WITH TIES;

--- a piece of an order, in each way of writing it
(SELECT id, 'limit' AS how FROM matches ORDER BY id DESC LIMIT 2 OFFSET 3) UNION ALL (SELECT id, 'fetch' FROM matches ORDER BY team COLLATE "C",
    id OFFSET 1 ROW FETCH NEXT ROW ONLY) UNION ALL (SELECT id, 'all' FROM staff ORDER BY pay USING <, id LIMIT ALL);

--- sets with and without doubles
SELECT 'union' AS op, team AS v FROM matches UNION (SELECT 'all', rival FROM matches UNION ALL SELECT 'all', 'Ajax') EXCEPT SELECT 'all', 'Benfica'
    UNION ALL (SELECT 'int', team FROM matches INTERSECT ALL SELECT 'int', rival FROM matches) UNION ALL (SELECT 'exc', team FROM matches EXCEPT ALL SELECT 'exc', rival
    FROM matches);

--- joins of all kinds
SELECT a.id, a.name, b.name AS boss, c.n FROM staff AS a LEFT JOIN staff AS b ON b.id = a.boss FULL JOIN (VALUES (2, 'two'), (99, 'none')) AS c (id, n) ON c.id = a.id
    CROSS JOIN generate_series(1, 1) WHERE b.pay > 1000 OR a.id IS NULL OR b.id IS NULL;

--- joins by name
SELECT j.id, origin, target, km FROM roads NATURAL JOIN (SELECT 3 AS origin) AS o JOIN (SELECT 1 AS id) AS i ON true JOIN staff USING (id) AS j;

--- a row's own subqueries
SELECT s.id, l.n, l.total, (SELECT max(pay) FROM staff WHERE boss = s.id) AS best, EXISTS (SELECT FROM staff WHERE boss = s.id) AS leads, s.pay >= ALL (SELECT pay
    FROM staff) AS top, (s.id, s.boss) IN (SELECT 2, 1) AS pair FROM staff AS s LEFT JOIN LATERAL (SELECT count(*) AS n, sum(pay) AS total FROM staff AS t
    WHERE t.boss = s.id) AS l ON true;

--- rows compared as wholes
SELECT id, row(boss, id) < (1, 3) AS a, (id, name) = ANY (SELECT 1, 'Ann') AS b, row(id, NULL) IS NULL AS c, row(NULL, NULL) IS NULL AS d, staff = staff AS e, (pay,
    id) BETWEEN (3000, 4) AND (5000.50, 2) AS f, row(1, 'x') IS DISTINCT FROM row(1, 'y') AS g FROM staff;

--- functions beside each other
SELECT * FROM ROWS FROM (generate_series(1, 3), unnest(ARRAY['a', 'b']), json_to_recordset('[{"x": 1.5}]') AS (x numeric)) WITH ORDINALITY AS r (n, v, x, o);

--- a sample of everything
SELECT id, team FROM matches TABLESAMPLE BERNOULLI (100) REPEATABLE (42) WHERE id < 5;

--- one table only, and partitions of another
SELECT tableoid::regclass::text AS part, id, n FROM parts UNION ALL SELECT 'only', count(*), NULL FROM ONLY parts;

--- views of both kinds
SELECT t.team, t.goals, k.fee FROM totals AS t JOIN kept AS k USING (team);

--- names that must be quoted
SELECT "Id", "ID", "a, b", "say ""hi""", "größe", "select", "Id" + 1 AS "weiß nicht", 'x' AS "UPPER", 'y' AS "upper" FROM "Odd names";

--- table expressions
WITH a AS MATERIALIZED (SELECT id, pay FROM staff), b (id, twice) AS NOT MATERIALIZED (SELECT id, pay * 2 FROM a), c AS (VALUES (1), (2)) SELECT b.id, b.twice, c.column1
    FROM b JOIN c ON c.column1 = b.id;

--- a tree from its root
WITH RECURSIVE tree (id, path, level) AS (SELECT id, ARRAY[name], 0 FROM staff WHERE boss IS NULL UNION ALL SELECT s.id, t.path || s.name, t.level + 1 FROM staff AS s
    JOIN tree AS t ON s.boss = t.id) SELECT id, level, path, array_to_string(path, ' > ') AS told FROM tree;

--- a tree in depth and in breadth
WITH RECURSIVE tree AS (SELECT id, boss FROM staff WHERE boss IS NULL UNION ALL SELECT s.id, s.boss FROM staff AS s
    JOIN tree ON s.boss = tree.id) SEARCH DEPTH FIRST BY id SET seen,
    broad AS (SELECT id FROM staff WHERE boss IS NULL UNION ALL SELECT s.id FROM staff AS s JOIN broad ON s.boss = broad.id) SEARCH BREADTH FIRST BY id SET seen
SELECT tree.id, row_number() OVER (ORDER BY tree.seen) AS depth_first, row_number() OVER (ORDER BY broad.seen) AS breadth_first, tree.seen, broad.seen AS level FROM tree
    JOIN broad USING (id);

--- a circle that is seen
WITH RECURSIVE way (origin, target, km) AS (SELECT origin, target, km FROM roads WHERE origin = 1 UNION ALL SELECT w.origin, r.target, w.km + r.km FROM way AS w
    JOIN roads AS r ON r.origin = w.target) CYCLE target SET looped TO 'y' DEFAULT 'n' USING path SELECT target, km, looped, path FROM way;

--- numbers that follow from numbers
WITH RECURSIVE fib (n, a, b) AS (SELECT 1, 0::numeric, 1::numeric UNION ALL SELECT n + 1, b, a + b FROM fib WHERE n < 150) SELECT n, a FROM fib;

--- a query in a query in a query
SELECT team, best FROM (SELECT team, max(total) AS best FROM (SELECT team, side, sum(goals) AS total FROM (SELECT * FROM matches WHERE is_final IS NOT TRUE) AS a
    GROUP BY team, side) AS b GROUP BY team) AS c WHERE best > (SELECT avg(goals) FROM matches);

--- a table turned on its side
SELECT team, max(goals) FILTER (WHERE side = 'home') AS home, max(goals) FILTER (WHERE side = 'away') AS away,
    sum(CASE side WHEN 'neutral' THEN goals ELSE 0 END) AS neutral FROM matches GROUP BY team;

--- a share, a change and a running mean, as analysts write them
SELECT day, fee, fee - lag(fee) OVER w AS change, round(100 * (fee / nullif(lag(fee) OVER w, 0) - 1), 4) AS percent,
    avg(fee) OVER (ORDER BY day ROWS BETWEEN 6 PRECEDING AND CURRENT ROW) AS week FROM matches WINDOW w AS (ORDER BY day);

--- islands of days
SELECT min(day) AS begins, max(day) AS ends, count(*) AS days FROM (SELECT day, day - (row_number() OVER (ORDER BY day))::int AS island FROM matches
    WHERE id % 7 <> 0) AS s GROUP BY island;

--- cohorts
SELECT date_trunc('week', first)::date AS cohort, (day - first::date) / 7 AS week, count(DISTINCT team) AS teams FROM (SELECT team, day,
    min(played) OVER (PARTITION BY team) AS first FROM matches) AS s GROUP BY 1, 2;

--- ten thousand rows
SELECT n AS id, n * 0.1 AS exact, n * 0.1::float8 AS near, (n * 0.1)::real AS nearer, md5(n::text) AS text, timestamp '2026-01-01' + n * interval '1.000001 s' AS at,
    CASE WHEN n % 3 > 0 THEN n END AS some FROM generate_series(1, 10000) AS n;

--- two hundred columns
SELECT 1 AS c1, 2 AS c2, 3 AS c3, 4 AS c4, 5 AS c5, 6 AS c6, 7 AS c7, 8 AS c8, 9 AS c9, 10 AS c10, 11 AS c11, 12 AS c12, 13 AS c13, 14 AS c14, 15 AS c15, 16 AS c16,
    17 AS c17, 18 AS c18, 19 AS c19,
    20 AS c20, 21 AS c21, 22 AS c22, 23 AS c23, 24 AS c24, 25 AS c25, 26 AS c26, 27 AS c27, 28 AS c28, 29 AS c29, 30 AS c30, 31 AS c31, 32 AS c32, 33 AS c33, 34 AS c34,
    35 AS c35, 36 AS c36, 37
    AS c37, 38 AS c38, 39 AS c39, 40 AS c40, 41 AS c41, 42 AS c42, 43 AS c43, 44 AS c44, 45 AS c45, 46 AS c46, 47 AS c47, 48 AS c48, 49 AS c49, 50 AS c50, 51 AS c51,
    52 AS c52, 53 AS c53, 54 AS
    c54, 55 AS c55, 56 AS c56, 57 AS c57, 58 AS c58, 59 AS c59, 60 AS c60, 61 AS c61, 62 AS c62, 63 AS c63, 64 AS c64, 65 AS c65, 66 AS c66, 67 AS c67, 68 AS c68,
    69 AS c69, 70 AS c70, 71 AS
    c71, 72 AS c72, 73 AS c73, 74 AS c74, 75 AS c75, 76 AS c76, 77 AS c77, 78 AS c78, 79 AS c79, 80 AS c80, 81 AS c81, 82 AS c82, 83 AS c83, 84 AS c84, 85 AS c85,
    86 AS c86, 87 AS c87, 88 AS
    c88, 89 AS c89, 90 AS c90, 91 AS c91, 92 AS c92, 93 AS c93, 94 AS c94, 95 AS c95, 96 AS c96, 97 AS c97, 98 AS c98, 99 AS c99, 100 AS c100, 101 AS c101, 102 AS c102,
    103 AS c103, 104 AS c104,
    105 AS c105, 106 AS c106, 107 AS c107, 108 AS c108, 109 AS c109, 110 AS c110, 111 AS c111, 112 AS c112, 113 AS c113, 114 AS c114, 115 AS c115, 116 AS c116,
    117 AS c117, 118 AS c118, 119 AS
    c119, 120 AS c120, 121 AS c121, 122 AS c122, 123 AS c123, 124 AS c124, 125 AS c125, 126 AS c126, 127 AS c127, 128 AS c128, 129 AS c129, 130 AS c130, 131 AS c131,
    132 AS c132, 133 AS c133,
    134 AS c134, 135 AS c135, 136 AS c136, 137 AS c137, 138 AS c138, 139 AS c139, 140 AS c140, 141 AS c141, 142 AS c142, 143 AS c143, 144 AS c144, 145 AS c145,
    146 AS c146, 147 AS c147, 148 AS
    c148, 149 AS c149, 150 AS c150, 151 AS c151, 152 AS c152, 153 AS c153, 154 AS c154, 155 AS c155, 156 AS c156, 157 AS c157, 158 AS c158, 159 AS c159, 160 AS c160,
    161 AS c161, 162 AS c162,
    163 AS c163, 164 AS c164, 165 AS c165, 166 AS c166, 167 AS c167, 168 AS c168, 169 AS c169, 170 AS c170, 171 AS c171, 172 AS c172, 173 AS c173, 174 AS c174,
    175 AS c175, 176 AS c176, 177 AS
    c177, 178 AS c178, 179 AS c179, 180 AS c180, 181 AS c181, 182 AS c182, 183 AS c183, 184 AS c184, 185 AS c185, 186 AS c186, 187 AS c187, 188 AS c188, 189 AS c189,
    190 AS c190, 191 AS c191,
    192 AS c192, 193 AS c193, 194 AS c194, 195 AS c195, 196 AS c196, 197 AS c197, 198 AS c198, 199 AS c199, 200 AS c200;
