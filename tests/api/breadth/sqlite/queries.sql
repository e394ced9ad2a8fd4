-- How statements are put together. breadth.rs says how this is read.

--- values alone
VALUES (1, 'a', NULL), (2, 'b', 1.5), (3, NULL, 2);

--- values as a table
SELECT v.column1 AS id, column2 AS name FROM (VALUES (1, 'a'), (2, NULL)) AS v;

--- in a statement with comments and a semicolon
SELECT id /* one /* two */, name FROM staff -- it's :nothing
 WHERE 1 /* the end */;

--- a comment that nobody closes
SELECT id FROM staff /* to the end

--- a statement that ends in a comment
SELECT id, name FROM staff -- and that was all

--- where NULL stands in orders
SELECT goals, row_number() OVER (ORDER BY goals, id) AS a, row_number() OVER (ORDER BY goals DESC, id) AS b, row_number() OVER (ORDER BY goals NULLS LAST, id) AS c,
    row_number() OVER (ORDER BY goals DESC NULLS FIRST, id) AS d, id FROM matches WHERE id IN (1, 2, 11, 12, 22);

--- pieces of orders
SELECT * FROM (SELECT id, 'offset' AS how FROM matches ORDER BY id DESC LIMIT 2 OFFSET 3) UNION ALL SELECT * FROM (SELECT id, 'comma' FROM matches ORDER BY team,
    id LIMIT 1, 2) UNION ALL SELECT * FROM (SELECT id, 'nulls' FROM matches ORDER BY goals NULLS LAST, id LIMIT 3) UNION ALL SELECT * FROM (SELECT id, 'all'
    FROM staff ORDER BY pay LIMIT -1);

--- orders by collations
SELECT v, row_number() OVER (ORDER BY v COLLATE NOCASE, v) AS a, row_number() OVER (ORDER BY v COLLATE BINARY) AS b, row_number() OVER (ORDER BY v COLLATE RTRIM,
    rowid) AS c, v = 'A' COLLATE NOCASE AS d FROM (SELECT 1 AS rowid, 'b' AS v UNION ALL SELECT 2, 'A' UNION ALL SELECT 3, 'a ' UNION ALL SELECT 4, 'B' UNION ALL
    SELECT 5, 'a');

--- numbers, texts and bytes in one order
SELECT v, row_number() OVER (ORDER BY v) AS place FROM (SELECT NULL AS v UNION ALL SELECT 'a' UNION ALL SELECT 2 UNION ALL SELECT x'00' UNION ALL SELECT 1.5 UNION ALL
    SELECT 'B');

--- ranks in windows
SELECT id, row_number() OVER w AS a, rank() OVER w AS b, dense_rank() OVER (PARTITION BY team ORDER BY goals) AS c, percent_rank() OVER w AS d, cume_dist() OVER w AS e,
    ntile(4) OVER (ORDER BY id DESC) AS f, lag(goals, 2, -1) OVER (ORDER BY id) AS g, lead(team) OVER (ORDER BY id) AS h, first_value(id) OVER w AS i,
    last_value(id) OVER w AS j, nth_value(id, 2) OVER w AS k FROM matches WINDOW w AS (PARTITION BY is_final ORDER BY goals DESC, id);

--- frames of rows, and what they leave out
SELECT id, sum(id) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING EXCLUDE CURRENT ROW) AS a,
    count(*) OVER (ORDER BY goals GROUPS BETWEEN 1 PRECEDING AND CURRENT ROW EXCLUDE TIES) AS b,
    avg(id) OVER (ORDER BY id RANGE BETWEEN 3 PRECEDING AND 1 FOLLOWING EXCLUDE GROUP) AS c,
    total(fee) OVER (ORDER BY id ROWS UNBOUNDED PRECEDING EXCLUDE NO OTHERS) AS d, group_concat(id, '>') OVER (ORDER BY id ROWS 2 PRECEDING) AS e,
    max(weight) OVER (ORDER BY weight RANGE BETWEEN 0.5 PRECEDING AND UNBOUNDED FOLLOWING) AS f, sum(goals) FILTER (WHERE id % 2) OVER (ORDER BY id) AS g FROM matches
    WHERE id <= 25;

--- aggregates over windows over groups
SELECT team, sum(goals) AS goals, sum(sum(goals)) OVER (ORDER BY team) AS running, round(100.0 * sum(goals) / sum(sum(goals)) OVER (), 2) AS share FROM matches
    GROUP BY team;

--- a bare column beside a maximum
SELECT team, max(goals) AS best, min(id) AS first FROM matches GROUP BY team HAVING count(*) > 2;

--- the best row of each group
SELECT team, id, max(views) AS views FROM matches GROUP BY team;

--- what is there once
SELECT DISTINCT team, is_final FROM matches;

--- sets
SELECT 'union' AS op, team AS v FROM matches UNION SELECT 'union', rival FROM matches EXCEPT SELECT 'union', 'Benfica' UNION ALL SELECT 'int', v FROM (SELECT team AS v
    FROM matches INTERSECT SELECT rival FROM matches);

--- joins of all kinds
SELECT a.id, a.name, b.name AS boss, c.column2 AS n FROM staff AS a LEFT JOIN staff AS b ON b.id = a.boss FULL OUTER JOIN (VALUES (2, 'two'), (99,
    'none')) AS c ON c.column1 = a.id;

--- joins by name, and from the right
SELECT origin, target, km, o.k FROM (SELECT 3 AS origin, 'k' AS k UNION ALL SELECT 9, 'l') AS o NATURAL LEFT JOIN roads UNION ALL SELECT id, boss, pay, name
    FROM staff RIGHT JOIN (SELECT 2 AS id) USING (id) CROSS JOIN (SELECT 1);

--- a row's own subqueries
SELECT s.id, (SELECT max(pay) FROM staff WHERE boss = s.id) AS best, EXISTS (SELECT 1 FROM staff WHERE boss = s.id) AS leads, (s.id, s.boss) IN (SELECT 2, 1) AS pair,
    (s.id, s.name) = (1, 'Ann') AS one, (s.pay, s.id) < (3000, 5) AS less FROM staff AS s;

--- indexes that are named
SELECT team, count(*) AS n FROM matches INDEXED BY by_team WHERE team = 'ajax' UNION ALL SELECT 'final', count(*) FROM matches INDEXED BY finals
    WHERE is_final = 1 AND day > '2026-03-01' UNION ALL SELECT 'none', count(*) FROM matches NOT INDEXED WHERE +team = 'ajax';

--- table expressions
WITH a AS MATERIALIZED (SELECT id, pay FROM staff), b (id, twice) AS NOT MATERIALIZED (SELECT id, pay * 2 FROM a), c AS (VALUES (1), (2)) SELECT b.id, b.twice,
    c.column1 AS c FROM b JOIN c ON c.column1 = b.id;

--- a tree from its root
WITH RECURSIVE tree (id, path, level) AS (SELECT id, name, 0 FROM staff WHERE boss IS NULL UNION ALL SELECT s.id, t.path || '/' || s.name, t.level + 1 FROM staff AS s
    JOIN tree AS t ON s.boss = t.id ORDER BY 3 DESC, 1) SELECT id, level, path, row_number() OVER () AS place FROM tree;

--- a circle that is left
WITH RECURSIVE way (target, km, path) AS (SELECT target, km, ',1,' || target || ',' FROM roads WHERE origin = 1 UNION SELECT r.target, w.km + r.km,
    w.path || r.target || ',' FROM way AS w JOIN roads AS r ON r.origin = w.target WHERE instr(w.path, ',' || r.target || ',') = 0 LIMIT 50) SELECT target, km, path
    FROM way;

--- numbers that follow from numbers
WITH RECURSIVE fib (n, a, b) AS (VALUES (1, 0, 1) UNION ALL SELECT n + 1, b, a + b FROM fib WHERE n < 91) SELECT n, a, a * 1.0 AS near FROM fib;

--- a day for each day
WITH RECURSIVE days (day) AS (SELECT '2026-02-24' UNION ALL SELECT date(day, '+1 day') FROM days WHERE day < '2026-03-10') SELECT days.day, count(m.id) AS played,
    strftime('%w', days.day) AS weekday FROM days LEFT JOIN matches AS m ON m.day = days.day GROUP BY days.day;

--- a table turned on its side
SELECT team, max(goals) FILTER (WHERE is_final) AS final, sum(CASE WHEN NOT is_final THEN goals ELSE 0 END) AS other, sum(iif(is_final IS NULL, 1, 0)) AS unknown
    FROM matches GROUP BY team;

--- a change and a running mean, as analysts write them
SELECT day, fee, fee - lag(fee) OVER w AS change, round(100 * (fee / nullif(lag(fee) OVER w, 0) - 1), 4) AS percent,
    avg(fee) OVER (ORDER BY day ROWS BETWEEN 6 PRECEDING AND CURRENT ROW) AS week FROM matches WINDOW w AS (ORDER BY day);

--- islands of days
SELECT min(day) AS begins, max(day) AS ends, count(*) AS days FROM (SELECT day, julianday(day) - row_number() OVER (ORDER BY day) AS island FROM matches
    WHERE id % 7 <> 0) GROUP BY island;

--- rows by their number
SELECT rowid AS r, oid AS o, _rowid_ AS u, matches.rowid = id AS same FROM matches WHERE rowid BETWEEN 3 AND 5;

--- views
SELECT t.team, t.goals, m.n FROM totals AS t JOIN (SELECT team, count(*) AS n FROM matches GROUP BY 1) AS m USING (team);

--- names in double quotes
SELECT 'no such column' AS v, "team" AS "t ""u" FROM matches WHERE id < 3;

--- ten thousand rows
WITH RECURSIVE n (id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM n WHERE id < 10000) SELECT id, id * 0.1 AS near, id / 7.0 AS nearer, hex(id) AS text,
    CASE WHEN id % 3 > 0 THEN id END AS some, datetime(id * 86400, 'unixepoch') AS at FROM n;

--- two hundred columns
SELECT 1.5 AS c1, 2 AS c2, 3.5 AS c3, 4 AS c4, 5.5 AS c5, 6 AS c6, 7.5 AS c7, 8 AS c8, 9.5 AS c9, 10 AS c10, 11.5 AS c11, 12 AS c12, 13.5 AS c13, 14 AS c14, 15.5 AS c15,
    16 AS c16, 17.5 AS c17, 18
    AS c18, 19.5 AS c19, 20 AS c20, 21.5 AS c21, 22 AS c22, 23.5 AS c23, 24 AS c24, 25.5 AS c25, 26 AS c26, 27.5 AS c27, 28 AS c28, 29.5 AS c29, 30 AS c30, 31.5 AS c31,
    32 AS c32, 33.5 AS c33,
    34 AS c34, 35.5 AS c35, 36 AS c36, 37.5 AS c37, 38 AS c38, 39.5 AS c39, 40 AS c40, 41.5 AS c41, 42 AS c42, 43.5 AS c43, 44 AS c44, 45.5 AS c45, 46 AS c46,
    47.5 AS c47, 48 AS c48, 49.5 AS
    c49, 50 AS c50, 51.5 AS c51, 52 AS c52, 53.5 AS c53, 54 AS c54, 55.5 AS c55, 56 AS c56, 57.5 AS c57, 58 AS c58, 59.5 AS c59, 60 AS c60, 61.5 AS c61, 62 AS c62,
    63.5 AS c63, 64 AS c64, 65.5
    AS c65, 66 AS c66, 67.5 AS c67, 68 AS c68, 69.5 AS c69, 70 AS c70, 71.5 AS c71, 72 AS c72, 73.5 AS c73, 74 AS c74, 75.5 AS c75, 76 AS c76, 77.5 AS c77, 78 AS c78,
    79.5 AS c79, 80 AS c80,
    81.5 AS c81, 82 AS c82, 83.5 AS c83, 84 AS c84, 85.5 AS c85, 86 AS c86, 87.5 AS c87, 88 AS c88, 89.5 AS c89, 90 AS c90, 91.5 AS c91, 92 AS c92, 93.5 AS c93,
    94 AS c94, 95.5 AS c95, 96 AS
    c96, 97.5 AS c97, 98 AS c98, 99.5 AS c99, 100 AS c100, 101.5 AS c101, 102 AS c102, 103.5 AS c103, 104 AS c104, 105.5 AS c105, 106 AS c106, 107.5 AS c107, 108 AS c108,
    109.5 AS c109, 110 AS
    c110, 111.5 AS c111, 112 AS c112, 113.5 AS c113, 114 AS c114, 115.5 AS c115, 116 AS c116, 117.5 AS c117, 118 AS c118, 119.5 AS c119, 120 AS c120, 121.5 AS c121,
    122 AS c122, 123.5 AS c123,
    124 AS c124, 125.5 AS c125, 126 AS c126, 127.5 AS c127, 128 AS c128, 129.5 AS c129, 130 AS c130, 131.5 AS c131, 132 AS c132, 133.5 AS c133, 134 AS c134,
    135.5 AS c135, 136 AS c136, 137.5 AS
    c137, 138 AS c138, 139.5 AS c139, 140 AS c140, 141.5 AS c141, 142 AS c142, 143.5 AS c143, 144 AS c144, 145.5 AS c145, 146 AS c146, 147.5 AS c147, 148 AS c148,
    149.5 AS c149, 150 AS c150,
    151.5 AS c151, 152 AS c152, 153.5 AS c153, 154 AS c154, 155.5 AS c155, 156 AS c156, 157.5 AS c157, 158 AS c158, 159.5 AS c159, 160 AS c160, 161.5 AS c161,
    162 AS c162, 163.5 AS c163, 164 AS
    c164, 165.5 AS c165, 166 AS c166, 167.5 AS c167, 168 AS c168, 169.5 AS c169, 170 AS c170, 171.5 AS c171, 172 AS c172, 173.5 AS c173, 174 AS c174, 175.5 AS c175,
    176 AS c176, 177.5 AS c177,
    178 AS c178, 179.5 AS c179, 180 AS c180, 181.5 AS c181, 182 AS c182, 183.5 AS c183, 184 AS c184, 185.5 AS c185, 186 AS c186, 187.5 AS c187, 188 AS c188,
    189.5 AS c189, 190 AS c190, 191.5 AS
    c191, 192 AS c192, 193.5 AS c193, 194 AS c194, 195.5 AS c195, 196 AS c196, 197.5 AS c197, 198 AS c198, 199.5 AS c199, 200 AS c200;
