-- How statements are put together. breadth.rs says how this is read.

--- all columns of the widest table
SELECT * FROM matches;

--- values alone
-- mariadb: MySQL writes VALUES ROW(…)
VALUES (1, 'a', NULL), (2, 'b', 1.50), (3, NULL, 2);

--- in parentheses, with a semicolon and comments
-- mariadb: MySQL writes VALUES ROW(…)
((SELECT id /* one ' */ FROM staff # it's :nothing
 WHERE TRUE) UNION ALL (VALUES (100))) /* the end */;

--- a statement that ends in a comment
SELECT id, name FROM staff -- and that was all

--- no row
SELECT id, v, n, shown, f, b FROM vacant;

--- no row of anything
SELECT id, team, played, tags, notes, code, ratio FROM matches WHERE FALSE;

--- aggregates of nothing
SELECT COUNT(*) AS a, COUNT(v) AS b, SUM(n) AS c, AVG(id) AS d, MAX(shown) AS e, GROUP_CONCAT(v) AS f, STD(n) AS g, BIT_OR(id) AS h, BIT_AND(id) AS i, JSON_ARRAYAGG(v) AS j, MIN(f) AS k
    FROM vacant;

--- aggregates of all kinds
SELECT team, COUNT(*) AS a, COUNT(DISTINCT goals) AS b, SUM(goals) AS c, SUM(views) AS d, SUM(fee) AS e, SUM(weight) AS f, AVG(goals) AS g, AVG(weight) AS h, AVG(fee) AS i,
    MIN(played) AS j, MAX(rival) AS k, BIT_AND(id) AS l, BIT_OR(id) AS m, BIT_XOR(id) AS n, GROUP_CONCAT(DISTINCT rival ORDER BY rival DESC SEPARATOR ';') AS o, MIN(side) AS p, MAX(day) AS q,
    SUM(is_final) AS r, MAX(ratio) AS s, MIN(kick_off) AS t, COUNT(DISTINCT side, is_final) AS u, SUM(ratio) AS v FROM matches GROUP BY team;

--- statistics, to the last digit
SELECT COUNT(*) AS a, STDDEV(goals) AS b, STDDEV_SAMP(goals) AS c, VARIANCE(fee) AS d, VAR_SAMP(weight) AS e, STD(id) AS f, VAR_POP(goals) AS g FROM matches;

--- groups with sums of sums
SELECT team, side, COUNT(*) AS n, SUM(fee) AS fee FROM matches GROUP BY team, side WITH ROLLUP;

--- groups that are chosen
SELECT side, is_final, COUNT(*) AS n, AVG(fee) AS mean FROM matches GROUP BY side, is_final HAVING COUNT(*) > 5 AND mean > 100;

--- groups by expressions and places
SELECT DATE_FORMAT(played, '%Y-%m') AS month, goals % 2 = 0 AS even, COUNT(*) AS n FROM matches GROUP BY 1, even ORDER BY 1 DESC, 2;

--- ranks in windows
SELECT id, ROW_NUMBER() OVER w AS a, RANK() OVER w AS b, DENSE_RANK() OVER (PARTITION BY team ORDER BY goals) AS c, PERCENT_RANK() OVER w AS d, CUME_DIST() OVER w AS e,
    NTILE(4) OVER (ORDER BY id DESC) AS f, LAG(goals, 2) OVER (ORDER BY id) AS g, LEAD(team) OVER (ORDER BY id) AS h, FIRST_VALUE(id) OVER w AS i, LAST_VALUE(id) OVER w AS j,
    NTH_VALUE(id, 2) OVER w AS k FROM matches WINDOW w AS (PARTITION BY side ORDER BY goals DESC, id);

--- frames of rows
SELECT id, SUM(id) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS a, COUNT(*) OVER (ORDER BY goals RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) AS b,
    AVG(fee) OVER (ORDER BY id ROWS 2 PRECEDING) AS c, SUM(fee) OVER (ORDER BY id ROWS UNBOUNDED PRECEDING) AS d, MAX(weight) OVER (PARTITION BY team) AS e,
    MIN(day) OVER (ORDER BY id DESC ROWS BETWEEN CURRENT ROW AND 2 FOLLOWING) AS f, SUM(weight) OVER (ORDER BY id) AS g FROM matches WHERE id <= 25;

--- medians and percentiles
-- mariadb: MySQL has no MEDIAN
SELECT DISTINCT team, MEDIAN(goals) OVER (PARTITION BY team) AS a, PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY weight) OVER (PARTITION BY team) AS b,
    PERCENTILE_DISC(0.25) WITHIN GROUP (ORDER BY id) OVER (PARTITION BY team) AS c FROM matches;

--- aggregates over windows over groups
SELECT team, SUM(goals) AS goals, SUM(SUM(goals)) OVER (ORDER BY team) AS running, ROUND(100.0 * SUM(goals) / SUM(SUM(goals)) OVER (), 2) AS share FROM matches GROUP BY team;

--- the first of each group
SELECT team, id, goals FROM (SELECT team, id, goals, ROW_NUMBER() OVER (PARTITION BY team ORDER BY goals DESC, id) AS place FROM matches) AS s WHERE place = 1;

--- what is there once
SELECT DISTINCT side, is_final FROM matches;

--- a piece of an order, in each way of writing it
-- mariadb: MySQL has no FETCH
(SELECT id, 'limit' AS how FROM matches ORDER BY id DESC LIMIT 2 OFFSET 3) UNION ALL (SELECT id, 'comma' FROM matches ORDER BY team, id LIMIT 1, 2)
    UNION ALL (SELECT id, 'fetch' FROM matches ORDER BY id OFFSET 5 ROWS FETCH NEXT 1 ROW ONLY);

--- the best, and those that tie with them
-- mariadb: MySQL has no FETCH
SELECT goals, id FROM matches WHERE goals IS NOT NULL ORDER BY goals DESC FETCH FIRST 3 ROWS WITH TIES;

--- sets with and without doubles
SELECT 'union' AS op, team AS v FROM matches UNION SELECT 'union', rival FROM matches UNION ALL (SELECT 'int', team FROM matches INTERSECT ALL SELECT 'int', rival FROM matches)
    UNION ALL (SELECT 'exc', team FROM matches EXCEPT ALL SELECT 'exc', rival FROM matches);

--- sets of other types
SELECT 1 AS a, 'x' AS b, DATE '2026-02-28' AS c, 1 AS d UNION ALL SELECT 1.50, 2, TIMESTAMP '2026-02-28 10:00:00', 18446744073709551615 UNION ALL SELECT NULL, NULL, NULL, -1
    UNION ALL SELECT 1e0, x'41', '2026-01-01', 0;

--- joins of all kinds
SELECT a.id, a.name, b.name AS boss, c.n FROM staff AS a LEFT JOIN staff AS b ON b.id = a.boss RIGHT JOIN (SELECT 2 AS id, 'two' AS n UNION ALL SELECT 99, 'none') AS c ON c.id = a.id
    CROSS JOIN seq_1_to_2 WHERE b.pay > 1000 OR a.id IS NULL;

--- joins by name
SELECT j.id, origin, target, km FROM roads NATURAL JOIN (SELECT 3 AS origin) AS o STRAIGHT_JOIN (SELECT 1 AS id) AS i JOIN staff AS j USING (id);

--- subqueries everywhere
SELECT s.id, (SELECT MAX(pay) FROM staff WHERE boss = s.id) AS best, EXISTS (SELECT 1 FROM staff WHERE boss = s.id) AS leads, s.pay >= ALL (SELECT pay FROM staff) AS top,
    (s.id, s.boss) IN (SELECT 2, 1) AS pair, s.id = ANY (SELECT boss FROM staff) AS a_boss FROM staff AS s WHERE s.pay > (SELECT AVG(pay) / 10 FROM staff);

--- partitions by their names
SELECT id, n FROM parts PARTITION (low) UNION ALL SELECT COUNT(*), SUM(n) FROM parts PARTITION (high);

--- a view
SELECT team, goals FROM totals;

--- what the catalog says
SELECT column_name AS name, column_type AS type, is_nullable AS nulls, ordinal_position AS place FROM information_schema.columns WHERE table_schema = DATABASE() AND table_name = 'matches';

--- numbers of a series
-- mariadb: MySQL has no series
SELECT seq AS id, seq * seq AS square FROM seq_1_to_100_step_7;

--- a period of validity
SELECT id, price, valid_from, valid_to FROM prices WHERE '2026-01-15' BETWEEN valid_from AND valid_to;

--- versions of rows
-- mariadb: MySQL keeps no versions
SELECT id, v FROM versions FOR SYSTEM_TIME ALL;

--- a hint of an index
SELECT id, team FROM matches FORCE INDEX (matches_of) WHERE team = 'Ajax' AND day > '2026-03-01';

--- table expressions
WITH a AS (SELECT id, pay FROM staff), b (id, twice) AS (SELECT id, pay * 2 FROM a) SELECT b.id, b.twice, c.n FROM b JOIN (SELECT 1 AS n UNION SELECT 2) AS c ON c.n = b.id;

--- a tree from its root
WITH RECURSIVE tree (id, path, level) AS (SELECT id, CAST(name AS CHAR(200)), 0 FROM staff WHERE boss IS NULL UNION ALL SELECT s.id, CONCAT(t.path, ' > ', s.name), t.level + 1
    FROM staff AS s JOIN tree AS t ON s.boss = t.id) SELECT id, level, path FROM tree;

--- a circle that is seen
-- mariadb: MySQL has no CYCLE
WITH RECURSIVE way (origin, target) AS (SELECT origin, target FROM roads WHERE origin = 1 UNION ALL SELECT r.origin, r.target FROM way AS w JOIN roads AS r ON r.origin = w.target)
    CYCLE origin, target RESTRICT SELECT origin, target FROM way;

--- numbers that follow from numbers
WITH RECURSIVE fib (n, a, b) AS (SELECT 1, CAST(0 AS DECIMAL(65,0)), CAST(1 AS DECIMAL(65,0)) UNION ALL SELECT n + 1, b, a + b FROM fib WHERE n < 150) SELECT n, a FROM fib;

--- every day of two months
WITH RECURSIVE days (d) AS (SELECT DATE '2026-02-01' UNION ALL SELECT d + INTERVAL 1 DAY FROM days WHERE d < '2026-03-31') SELECT d, COUNT(m.id) AS n FROM days
    LEFT JOIN matches AS m ON m.day = d GROUP BY d;

--- a query in a query in a query
SELECT team, best FROM (SELECT team, MAX(total) AS best FROM (SELECT team, side, SUM(goals) AS total FROM (SELECT * FROM matches WHERE is_final IS NOT TRUE) AS a GROUP BY team, side) AS b
    GROUP BY team) AS c WHERE best > (SELECT AVG(goals) FROM matches);

--- a table turned on its side
SELECT team, SUM(IF(side = 'home', goals, 0)) AS home, MAX(CASE side WHEN 'away' THEN goals END) AS away, COUNT(NULLIF(side, 'neutral')) AS others FROM matches GROUP BY team;

--- a share, a change and a running mean, as analysts write them
SELECT day, fee, fee - LAG(fee) OVER (ORDER BY day) AS difference, ROUND(100 * (fee / NULLIF(LAG(fee) OVER (ORDER BY day), 0) - 1), 4) AS percent,
    AVG(fee) OVER (ORDER BY day ROWS BETWEEN 6 PRECEDING AND CURRENT ROW) AS week FROM matches;

--- islands of days
SELECT MIN(day) AS begins, MAX(day) AS ends, COUNT(*) AS days FROM (SELECT day, TO_DAYS(day) - ROW_NUMBER() OVER (ORDER BY day) AS island FROM matches WHERE id % 7 <> 0) AS s
    GROUP BY island;

--- cohorts
SELECT cohort, DATEDIFF(day, cohort) DIV 7 AS week, COUNT(DISTINCT team) AS teams FROM (SELECT team, day, MIN(day) OVER (PARTITION BY team) AS cohort FROM matches) AS s GROUP BY 1, 2;

--- bytes and texts that are compared
SELECT id, raw = 'text' AS a, raw = x'ff' AS b, b LIKE '%x%' AS c, HEX(padded) AS d FROM texts;

--- ten thousand rows
SELECT seq AS id, seq * 0.1 AS exact, seq * 0.1e0 AS near, MD5(CONCAT(seq)) AS text, TIMESTAMP '2026-01-01 00:00:00' + INTERVAL seq * 1000001 MICROSECOND AS at, IF(seq % 3 > 0, seq, NULL) AS some
    FROM seq_1_to_10000;
