Queries over `staff.csv`, `events.jsonl` and `sales.parquet`, as `values.sql` has it.

--- columns of a text have their types
-- = 1|Ada|eng|5200.50|2020-01-31|true|~
-- = 2|Bob|eng|4100.00|2021-02-28|true|1
-- = 3|Çelik|ops|3999.99|2021-02-28|false|1
-- = 4|Dana|ops|~|2024-02-29|true|3
-- = 5|Eve|~|4100.00|~|~|3
-- = 6|O'Neil, "Mac"|eng|10.05|1969-12-31|false|2
SELECT id, name, team, salary, hired, active, boss FROM staff ORDER BY id

--- columns of JSON Lines have their types
-- = 1|1|login|2026-01-01T00:00:00.000000Z|2026-01-01T00:00:00.000000|1.50|["a","b"]
-- = 2|1|buy|2026-01-01T22:59:59.999999Z|2026-01-01T23:59:59.999999|2.25|[]
-- = 3|2|buy|1969-12-31T23:59:59.500000Z|1969-12-31T23:59:59.500000|-0.75|~
-- = 4|~|login|~|~|~|{"x":1.50}
-- = 5|6|100%_off|9999-12-31T23:59:59.000000Z|9999-12-31T23:59:59.000000|10.00|~
SELECT id, staff, kind, "at", "local", n, tags FROM events ORDER BY id

--- columns of Parquet have their types
-- = 1|1|100.00|1|0.1|2026-01-01|2026-01-01T00:00:00.000000|9223372036854775807|["a","b"]
-- = 2|1|0.01|2|0.2|2026-01-01|2026-01-01T00:00:00.001000|-9223372036854775808|[]
-- = 3|2|19.99|3|100000000000000000000|2026-01-31|2026-01-31T23:59:59.999000|0|~
-- = 4|2|19.99|3|NaN|2026-02-01|2026-02-01T00:00:00.000000|1|["a"]
-- = 5|3|~|~|~|2026-02-28|2026-02-28T00:00:00.000000|-1|["c",null]
-- = 6|6|-5.00|-1|-1.5|2025-12-31|1969-12-31T23:59:59.999000|2|["b"]
-- = 7|6|1234567.89|30000|inf|2026-03-01|~|3|["a"]
-- = 8|~|7.50|0|0|~|1970-01-01T00:00:00.000000|~|~
SELECT id, staff, amount, qty, price, day, at, big, tags FROM sales ORDER BY id

--- NULLs are last
-- = 6|10.05
-- = 3|3999.99
-- = 2|4100.00
-- = 5|4100.00
-- = 1|5200.50
-- = 4|~
SELECT id, salary FROM staff ORDER BY salary, id

--- NULLs are first where the greatest is
-- = 4|~
-- = 1|5200.50
-- = 2|4100.00
-- = 5|4100.00
-- = 3|3999.99
-- = 6|10.05
SELECT id, salary FROM staff ORDER BY salary DESC, id

--- NULLs are where they are asked for
-- = 4
-- = 6
-- = 3
SELECT id FROM staff ORDER BY salary NULLS FIRST, id DESC LIMIT 3

--- what is no number is greatest
-- = 4|NaN
-- = 7|inf
-- = 3|100000000000000000000
-- = 2|0.2
-- = 1|0.1
-- = 8|0
-- = 6|-1.5
-- = 5|~
SELECT id, price FROM sales ORDER BY price DESC NULLS LAST, id

--- texts are in the order of their signs
-- = Ada
-- = Bob
-- = Dana
-- = Eve
-- = O'Neil, "Mac"
-- = Çelik
SELECT name FROM staff ORDER BY name

--- a page
-- = 4
-- = 5
SELECT id FROM staff ORDER BY id LIMIT 2 OFFSET 3

--- a page behind all
-- none
SELECT id FROM staff ORDER BY id OFFSET 10

--- no rows of a page
-- none
SELECT id FROM staff ORDER BY id LIMIT 0

--- a column by its place
-- = ~|5
-- = ops|3
-- = ops|4
SELECT team, id FROM staff ORDER BY 1 DESC, 2 LIMIT 3

--- a column that is not shown orders
-- = Eve
-- = O'Neil, "Mac"
-- = Ada
SELECT name FROM staff ORDER BY hired NULLS FIRST, id DESC LIMIT 3

--- once each
-- = eng
-- = ops
-- = ~
SELECT DISTINCT team FROM staff ORDER BY team

--- once each of two
-- = eng|false
-- = eng|true
-- = ops|false
-- = ops|true
-- = ~|~
SELECT DISTINCT team, active FROM staff ORDER BY team, active

--- the first of each
-- = eng|1
-- = ops|3
-- = ~|5
SELECT DISTINCT ON (team) team, id FROM staff ORDER BY team, salary DESC NULLS LAST, id

--- counts
-- = 6|5|4|2
SELECT count(*) AS a, count(salary) AS b, count(DISTINCT salary) AS c, count(DISTINCT team) AS d FROM staff

--- sums
-- = 17410.54|21|13310.54
SELECT sum(salary) AS a, sum(id) AS b, sum(DISTINCT salary) AS c FROM staff

--- sums of nothing
-- = ~|0|~|~|0
SELECT sum(salary) AS a, count(salary) AS b, max(id) AS c, avg(salary) AS d, count(*) AS e FROM staff WHERE id > 100

--- groups of nothing
-- none
SELECT team, count(*) AS n FROM staff WHERE id > 100 GROUP BY team

--- averages
-- = 3482.108000|3.5|8.4
SELECT avg(salary) AS a, avg(id) AS b, avg(grade) AS c FROM staff

--- the least and the greatest
-- = 10.05|5200.50|1969-12-31|2024-02-29|Ada|Çelik
SELECT min(salary) AS a, max(salary) AS b, min(hired) AS c, max(hired) AS d, min(name) AS e, max(name) AS f FROM staff

--- of booleans
-- = false|true|3|2
SELECT bool_and(active) AS a, bool_or(active) AS b, count(*) FILTER (WHERE active) AS c, count(*) FILTER (WHERE NOT active) AS d FROM staff

--- groups, NULL one of them
-- = eng|3|9310.55|1
-- = ops|2|3999.99|3
-- = ~|1|4100.00|5
SELECT team, count(*) AS n, sum(salary) AS s, min(id) AS m FROM staff GROUP BY team ORDER BY team

--- groups by what is computed
-- = 1969|1
-- = 2020|1
-- = 2021|2
-- = 2024|1
-- = ~|1
SELECT extract(year FROM hired) AS y, count(*) AS n FROM staff GROUP BY extract(year FROM hired) ORDER BY y

--- groups by an alias
-- = ENG|3
-- = OPS|2
-- = ~|1
SELECT upper(team) AS t, count(*) AS n FROM staff GROUP BY t ORDER BY t

--- groups that are left
-- = eng|3
-- = ops|2
SELECT team, count(*) AS n FROM staff GROUP BY team HAVING count(*) > 1 ORDER BY team

--- a whole that is left
-- none
SELECT count(*) AS n FROM staff HAVING count(*) > 100

--- sums by filters
-- = 1234607.88|~
SELECT sum(amount) FILTER (WHERE qty > 1) AS a, sum(amount) FILTER (WHERE qty > 100000) AS b FROM sales

--- sums of sums
-- = eng|9310.55
-- = ops|3999.99
-- = ~|4100.00
-- = ~|17410.54
SELECT team, sum(salary) AS s FROM staff GROUP BY ROLLUP (team) ORDER BY team, s

--- sets of groups
-- = eng|~|3
-- = ops|~|2
-- = ~|false|2
-- = ~|true|3
-- = ~|~|1
-- = ~|~|1
-- = ~|~|6
SELECT team, active, count(*) AS n FROM staff GROUP BY GROUPING SETS ((team), (active), ()) ORDER BY team, active, n

--- cubes
-- = eng|false|1|0
-- = eng|true|2|0
-- = eng|~|3|0
-- = ops|false|1|0
-- = ops|true|1|0
-- = ops|~|2|0
-- = ~|false|2|1
-- = ~|true|3|1
-- = ~|~|5|1
SELECT team, active, count(*) AS n, grouping(team) AS g FROM staff WHERE team IS NOT NULL GROUP BY CUBE (team, active) ORDER BY team, active, n

--- lists of groups
-- = eng|[6,2,1]
-- = ops|[4,3]
-- = ~|[5]
SELECT team, array_agg(id ORDER BY id DESC) AS ids FROM staff GROUP BY team ORDER BY team

--- texts of groups
-- = eng|Ada; Bob; O'Neil, "Mac"
-- = ops|Çelik; Dana
-- = ~|Eve
SELECT team, string_agg(name, '; ' ORDER BY id) AS names FROM staff GROUP BY team ORDER BY team

--- the first and the last of groups
-- = Ada|O'Neil, "Mac"
SELECT first_value(name ORDER BY id) AS a, last_value(name ORDER BY id) AS b FROM staff

--- medians
-- = 9|4100.00
SELECT median(grade) AS a, median(salary) AS b FROM staff

--- percentiles
-- = 9|9
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY grade) AS a, percentile_cont(0.25) WITHIN GROUP (ORDER BY grade) AS b FROM staff

--- spreads
-- = 2|1.4142135623730951|3
SELECT var_pop(grade) AS a, stddev_pop(grade) AS b, var_samp(grade) AS c FROM staff WHERE grade IN (9, 12)

--- products of decimals and whole numbers
-- = 1|100.00
-- = 2|0.02
-- = 3|59.97
-- = 4|59.97
-- = 5|~
-- = 6|5.00
-- = 7|37037036700.00
-- = 8|0.00
SELECT id, amount * qty AS a FROM sales ORDER BY id

--- decimals of a column are divided
-- = 1|33.3333333333|433.3750000000
-- = 2|0.0033333333|433.3750000000
-- = 3|6.6633333333|455.5555555556
-- = 4|6.6633333333|455.5555555556
-- = 5|~|444.4433333333
-- = 6|-1.6666666667|5.0250000000
-- = 7|411522.6300000000|5.0250000000
SELECT id, amount / 3 AS a, salary / grade AS b FROM (SELECT s.id, s.amount, p.salary, p.grade FROM sales s JOIN staff p ON p.id = s.staff) x ORDER BY id

--- decimals among floats are divided as floats
-- = 0.5|2
-- = 1|1
SELECT a / 3.0 AS b, 3.0 / a AS c FROM (SELECT 1.5 AS a UNION ALL SELECT CAST('3' AS double)) AS x ORDER BY a

--- whole numbers among decimals are divided as decimals
-- = 0.3333333333
-- = 0.8333333333
SELECT a / 3 AS b FROM (SELECT 1 AS a UNION ALL SELECT 2.5) AS x ORDER BY a

--- whole numbers that are chosen beside decimals are divided as decimals
-- = 0.3333333333
-- = 0.8333333333
SELECT CASE WHEN id = 1 THEN 1 ELSE 2.5 END / 3 AS b FROM staff WHERE id < 3 ORDER BY id

--- what is chosen is one type, whichever stands first
-- = 1.0|1.50|~
-- = 2.5|2.00|~
SELECT CASE WHEN id = 1 THEN 1 ELSE 2.5 END AS a, CASE id WHEN 1 THEN 1.50 WHEN 2 THEN 2 END AS b, CASE WHEN id > 2 THEN 1.5 ELSE NULL END AS c FROM staff WHERE id < 3 ORDER BY id

--- shares of a whole
-- = 1|71.43
-- = 2|0.01
-- = 3|14.28
-- = 4|14.28
SELECT id, round(100 * amount / sum(amount) OVER (), 2) AS share FROM sales WHERE amount > 0 AND id < 5 ORDER BY id

--- floats
-- = 1|0.2|-0.1|true
-- = 2|0.4|-0.2|true
-- = 3|200000000000000000000|-100000000000000000000|true
-- = 4|NaN|NaN|true
-- = 5|~|~|~
-- = 6|-3|1.5|false
-- = 7|inf|-inf|true
-- = 8|0|0|false
SELECT id, price * 2 AS a, -price AS b, price > 0 AS c FROM sales ORDER BY id

--- floats beside decimals
-- = 1
-- = 3
-- = 4
-- = 7
SELECT id FROM sales WHERE price = 0.1 OR price >= 1.5 ORDER BY id

--- floats and decimals are compared as floats
-- = 1
-- = 8
SELECT id FROM sales WHERE price < amount ORDER BY id

--- the ends of whole numbers
-- = -9223372036854775808|9223372036854775807|4|7
SELECT min(big) AS a, max(big) AS b, sum(big) AS c, count(big) AS d FROM sales

--- conditions with NULL
-- = 1
-- = 2
-- = 5
SELECT id FROM staff WHERE salary > 4000 OR team IS NULL ORDER BY id

--- what is not so leaves NULL out
-- = 3
-- = 6
SELECT id FROM staff WHERE NOT (salary > 4000) ORDER BY id

--- booleans are conditions
-- = 1
-- = 2
-- = 4
SELECT id FROM staff WHERE active ORDER BY id

--- neither true nor false
-- = 3
-- = 5
-- = 6
SELECT id FROM staff WHERE active IS NOT TRUE ORDER BY id

--- lists of values
-- = 1
-- = 2
-- = 6
SELECT id FROM staff WHERE team IN ('eng', 'hr') ORDER BY id

--- lists of values that it is none of
-- = 3
-- = 4
SELECT id FROM staff WHERE team NOT IN ('eng', 'hr') ORDER BY id

--- patterns
-- = 5
SELECT id FROM events WHERE kind LIKE '100\%%' ORDER BY id

--- patterns with another escape
-- = 5
SELECT id FROM events WHERE kind LIKE '%!%!_%' ESCAPE '!' ORDER BY id

--- patterns of the whole
-- = 1
-- = 2
-- = 3
-- = 4
SELECT id FROM events WHERE kind SIMILAR TO '(login|buy)' ORDER BY id

--- decimals to the digit
-- = 3
-- = 4
SELECT id FROM sales WHERE amount = 19.990 ORDER BY id

--- decimals between
-- = 2
-- = 3
-- = 4
-- = 8
SELECT id FROM sales WHERE amount BETWEEN 0.01 AND 19.99 ORDER BY id

--- days
-- = 3
-- = 4
-- = 5
SELECT id FROM sales WHERE day >= DATE '2026-01-31' AND day < DATE '2026-02-01' + INTERVAL '1 month' ORDER BY id

--- days as texts
-- = 1
-- = 2
SELECT id FROM sales WHERE day = '2026-01-01' ORDER BY id

--- days of a month
-- = 2025-12-01T00:00:00.000000|1
-- = 2026-01-01T00:00:00.000000|3
-- = 2026-02-01T00:00:00.000000|2
-- = 2026-03-01T00:00:00.000000|1
-- = ~|1
SELECT date_trunc('month', day) AS month, count(*) AS n FROM sales GROUP BY 1 ORDER BY 1

--- moments finer than their column
-- = 1
-- = 6
-- = 8
SELECT id FROM sales WHERE at < '2026-01-01 00:00:00.0005' ORDER BY id

--- moments of a day
-- = 3
SELECT id FROM sales WHERE at >= DATE '2026-01-31' AND at < DATE '2026-02-01' ORDER BY id

--- moments in UTC
-- = 2
SELECT id FROM events WHERE "at" = '2026-01-01T23:59:59.999999+01:00' ORDER BY id

--- moments beside clocks
-- = 3
SELECT id FROM events WHERE "local" < TIMESTAMP '1970-01-01 00:00:00' ORDER BY id

--- the end of times
-- = 5
SELECT id FROM events WHERE "at" >= TIMESTAMPTZ '9999-12-31 00:00:00Z' ORDER BY id

--- hours in a zone
-- = 1|1
-- = 2|23
SELECT id, extract(hour FROM "at" AT TIME ZONE 'Europe/Berlin') AS h FROM events WHERE id < 3 ORDER BY id

--- groups by the day in a zone
-- = 1970-01-01|1
-- = 2026-01-01|1
-- = 2026-01-02|1
SELECT CAST("at" AT TIME ZONE 'Asia/Tokyo' AS date) AS d, count(*) AS n FROM events WHERE id < 4 GROUP BY CAST("at" AT TIME ZONE 'Asia/Tokyo' AS date) ORDER BY d

--- the end of times in a zone
-- = 5|9999-12-31T18:59:59.000000|9999-12-31T22:59:59.000000Z
SELECT id, "at" AT TIME ZONE 'America/New_York' AS a, local AT TIME ZONE 'Europe/Berlin' AS b FROM events WHERE "at" AT TIME ZONE 'America/New_York' > '2027-01-01 00:00:00' ORDER BY id

--- what clocks in a zone show beside moments
-- = 1
SELECT id FROM events WHERE "at" < TIMESTAMP '2026-01-01 02:00:00' AT TIME ZONE 'Europe/Berlin' AND "at" >= TIMESTAMP '2026-01-01 01:00:00' AT TIME ZONE 'Europe/Berlin' ORDER BY id

--- days from moments
-- = 1|2026-01-01|2026-01-01T00:00:00.000000Z
-- = 2|2026-01-01|2026-01-01T22:00:00.000000Z
-- = 3|1969-12-31|1969-12-31T23:00:00.000000Z
-- = 4|~|~
SELECT id, CAST("at" AS date) AS d, date_trunc('hour', "at") AS h FROM events WHERE id < 5 ORDER BY id

--- spans of days
-- = 1|2493
-- = 2|2099
-- = 3|2099
-- = 4|1003
-- = 5|~
-- = 6|20786
SELECT id, DATE '2026-11-28' - hired AS days FROM staff ORDER BY id

--- moments later
-- = 1|2026-02-01T00:00:00.000000
-- = 2|2026-02-01T23:59:59.999999
SELECT id, "local" + INTERVAL '1 month' AS later FROM events WHERE id < 3 ORDER BY id

--- both
-- = Ada|login
-- = Ada|buy
-- = Bob|buy
-- = O'Neil, "Mac"|100%_off
SELECT s.name, e.kind FROM staff s JOIN events e ON e.staff = s.id ORDER BY e.id

--- all of the left
-- = 1|1
-- = 1|2
-- = 2|3
-- = 3|~
-- = 4|~
-- = 5|~
-- = 6|5
SELECT s.id, e.id AS event FROM staff s LEFT JOIN events e ON e.staff = s.id ORDER BY s.id, event

--- all of the right
-- = 1|1
-- = 1|2
-- = 2|3
-- = ~|4
-- = 6|5
SELECT s.id, e.id AS event FROM staff s RIGHT JOIN events e ON e.staff = s.id ORDER BY event

--- all of both
-- = 1|1
-- = 1|2
-- = 2|3
-- = 3|~
-- = 4|~
-- = 5|~
-- = 6|5
-- = ~|4
SELECT s.id, e.id AS event FROM staff s FULL JOIN events e ON e.staff = s.id ORDER BY s.id, event

--- a condition of a join is none of its rows
-- = 1|2
-- = 2|3
-- = 3|~
-- = 4|~
-- = 5|~
-- = 6|~
SELECT s.id, e.id AS event FROM staff s LEFT JOIN events e ON e.staff = s.id AND e.kind = 'buy' ORDER BY s.id, event

--- by a name of both
-- = 1|login|100.00
-- = 2|buy|0.01
-- = 3|buy|19.99
-- = 4|login|19.99
-- = 5|100%_off|~
SELECT id, kind, amount FROM events JOIN sales USING (id) ORDER BY id

--- each with each
-- = 30
SELECT count(*) AS n FROM staff CROSS JOIN events

--- with itself
-- = Bob|Ada
-- = Çelik|Ada
-- = Dana|Çelik
-- = Eve|Çelik
-- = O'Neil, "Mac"|Bob
SELECT a.name, b.name AS boss FROM staff a JOIN staff b ON b.id = a.boss ORDER BY a.id

--- by numbers of two types
-- = 7
SELECT count(*) AS n FROM sales a JOIN staff b ON a.staff = b.id

--- by a decimal and a whole number
-- none
SELECT e.id FROM events e JOIN staff s ON e.n = s.id ORDER BY e.id

--- NULL joins nothing
-- = 13
SELECT count(*) AS n FROM staff a JOIN staff b ON a.team = b.team

--- by more and less
-- = 2|1
-- = 3|3
-- = 5|1
-- = 6|4
SELECT a.id, count(*) AS n FROM staff a JOIN staff b ON b.salary > a.salary GROUP BY a.id ORDER BY a.id

--- there is one
-- = 1
-- = 6
SELECT id FROM staff s WHERE EXISTS (SELECT 1 FROM sales x WHERE x.staff = s.id AND x.amount > 50) ORDER BY id

--- there is none
-- = 4
-- = 5
SELECT id FROM staff s WHERE NOT EXISTS (SELECT 1 FROM sales x WHERE x.staff = s.id) ORDER BY id

--- one of those
-- = 1
-- = 2
-- = 3
-- = 6
SELECT id FROM staff WHERE id IN (SELECT staff FROM sales) ORDER BY id

--- none of those, of which one is NULL
-- none
SELECT id FROM staff WHERE id NOT IN (SELECT staff FROM sales) ORDER BY id

--- none of those
-- = 4
-- = 5
SELECT id FROM staff WHERE id NOT IN (SELECT staff FROM sales WHERE staff IS NOT NULL) ORDER BY id

--- a value of another table
-- = 1|100.01
-- = 2|39.98
-- = 3|~
-- = 4|~
-- = 5|~
-- = 6|1234562.89
SELECT id, (SELECT sum(amount) FROM sales x WHERE x.staff = s.id) AS total FROM staff s ORDER BY id

--- a value of a table is one
-- = 1
SELECT id FROM staff WHERE salary = (SELECT max(salary) FROM staff) ORDER BY id

--- counts of nothing are zero
-- = 1|2
-- = 2|2
-- = 3|1
-- = 4|0
-- = 5|0
-- = 6|2
SELECT id, (SELECT count(*) FROM sales x WHERE x.staff = s.id) AS n FROM staff s ORDER BY id

--- of each side
-- = 1|100.01
-- = 2|39.98
-- = 3|~
-- = 4|~
-- = 5|~
-- = 6|1234562.89
SELECT s.id, x.total FROM staff s, LATERAL (SELECT sum(amount) AS total FROM sales WHERE sales.staff = s.id) x ORDER BY s.id

--- one after the other
-- = 1
-- = 1
-- = 2
-- = 2
SELECT id FROM staff WHERE id < 3 UNION ALL SELECT id FROM events WHERE id < 3 ORDER BY id

--- of both once
-- = 100%_off
-- = buy
-- = eng
-- = login
-- = ops
-- = ~
SELECT team FROM staff UNION SELECT kind FROM events ORDER BY team

--- in both
-- = 1
-- = 2
-- = 6
SELECT id FROM staff INTERSECT SELECT staff FROM events ORDER BY id

--- in one only
-- = 3
-- = 4
-- = 5
SELECT id FROM staff EXCEPT SELECT staff FROM events ORDER BY id

--- types of both
-- = 1.00
-- = 2.50
SELECT 1 AS x UNION ALL SELECT 2.50 ORDER BY x

--- named queries
-- = O'Neil, "Mac"|1234562.89
-- = Ada|100.01
-- = Bob|39.98
-- = Çelik|~
WITH paid AS (SELECT staff, sum(amount) AS total FROM sales GROUP BY staff), named AS (SELECT p.total, s.name FROM paid p JOIN staff s ON s.id = p.staff) SELECT name, total FROM named ORDER BY total DESC NULLS LAST, name

--- those below
-- = 1|0
-- = 2|1
-- = 3|1
-- = 4|2
-- = 5|2
-- = 6|2
WITH RECURSIVE below AS (SELECT id, 0 AS depth FROM staff WHERE boss IS NULL AND team = 'eng' UNION ALL SELECT s.id, b.depth + 1 FROM staff s JOIN below b ON s.boss = b.id) SELECT id, depth FROM below ORDER BY depth, id

--- numbers of rows
-- = 1|1
-- = 2|2
-- = 3|4
-- = 4|6
-- = 5|3
-- = 6|5
SELECT id, row_number() OVER (ORDER BY salary DESC NULLS LAST, id) AS n FROM staff ORDER BY id

--- ranks
-- = 1|5|4
-- = 2|2|2
-- = 3|2|2
-- = 4|4|3
-- = 5|6|5
-- = 6|1|1
SELECT id, rank() OVER (ORDER BY grade) AS a, dense_rank() OVER (ORDER BY grade) AS b FROM staff ORDER BY id

--- parts of a rank
-- = 1|1|0|0.2
-- = 2|1|0.25|0.4
-- = 3|1|0.5|0.6
-- = 4|2|0.75|0.8
-- = 5|2|1|1
SELECT id, ntile(2) OVER (ORDER BY id) AS a, percent_rank() OVER (ORDER BY id) AS b, cume_dist() OVER (ORDER BY id) AS c FROM staff WHERE id < 6 ORDER BY id

--- rows before and behind
-- = 1|~|Çelik
-- = 2|1|Dana
-- = 3|2|Eve
-- = 4|3|O'Neil, "Mac"
-- = 5|4|none
-- = 6|5|none
SELECT id, lag(id) OVER (ORDER BY id) AS a, lead(name, 2, 'none') OVER (ORDER BY id) AS b FROM staff ORDER BY id

--- windows by groups
-- = 1|12|3
-- = 2|21|3
-- = 3|9|2
-- = 4|19|2
-- = 5|~|1
-- = 6|23|3
SELECT id, sum(grade) OVER (PARTITION BY team ORDER BY id) AS a, count(*) OVER (PARTITION BY team) AS b FROM staff ORDER BY id

--- equals are in one frame
-- = 1|7
-- = 2|12
-- = 3|12
-- = 4|16
-- = 5|21
-- = 6|6
SELECT id, sum(id) OVER (ORDER BY hired) AS s FROM staff ORDER BY id

--- frames of rows
-- = 1|3|~
-- = 2|6|1
-- = 3|9|2
-- = 4|12|3
-- = 5|15|4
-- = 6|11|5
SELECT id, sum(id) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS a, max(id) OVER (ORDER BY id ROWS BETWEEN 2 PRECEDING AND 1 PRECEDING) AS b FROM staff ORDER BY id

--- frames of numbers
-- = 1|1
-- = 2|3
-- = 3|3
-- = 4|3
-- = 6|1
SELECT id, count(*) OVER (ORDER BY grade RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS n FROM staff WHERE grade IS NOT NULL ORDER BY id

--- frames of days
-- = 1|3
-- = 2|3
-- = 3|4
-- = 4|4
-- = 5|3
-- = 6|1
-- = 7|4
SELECT id, count(*) OVER (ORDER BY day RANGE BETWEEN INTERVAL '31 days' PRECEDING AND CURRENT ROW) AS n FROM sales WHERE day IS NOT NULL ORDER BY id

--- frames of groups
-- = 1|5
-- = 2|11
-- = 3|11
-- = 4|9
-- = 6|6
SELECT id, sum(id) OVER (ORDER BY grade GROUPS BETWEEN 1 PRECEDING AND CURRENT ROW) AS s FROM staff WHERE grade IS NOT NULL ORDER BY id

--- the first and the last of a frame
-- = 1|Ada|Ada|~
-- = 2|Ada|Bob|Bob
-- = 3|Çelik|Çelik|~
-- = 4|Çelik|Dana|Dana
-- = 5|Eve|Eve|~
-- = 6|Ada|O'Neil, "Mac"|Bob
SELECT id, first_value(name) OVER (PARTITION BY team ORDER BY id) AS a, last_value(name) OVER (PARTITION BY team ORDER BY id) AS b, nth_value(name, 2) OVER (PARTITION BY team ORDER BY id) AS c FROM staff ORDER BY id

--- windows with a name
-- = 1|1|1
-- = 2|3|1.5
-- = 3|6|2
-- = 4|10|2.5
-- = 5|15|3
-- = 6|21|3.5
SELECT id, sum(id) OVER w AS a, avg(id) OVER w AS b FROM staff WINDOW w AS (ORDER BY id) ORDER BY id

--- averages that move
-- = 1|100.000000
-- = 2|50.005000
-- = 3|40.000000
-- = 4|13.330000
-- = 5|19.990000
-- = 6|7.495000
-- = 7|617281.445000
-- = 8|411523.463333
SELECT id, avg(amount) OVER (ORDER BY id ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS a FROM sales ORDER BY id

--- what a window leaves
-- = 1
-- = 3
-- = 5
SELECT id FROM (SELECT id, row_number() OVER (PARTITION BY team ORDER BY id) AS n FROM staff) x WHERE n = 1 ORDER BY id

--- what a window leaves, in short
-- = 4
-- = 5
-- = 6
SELECT id FROM staff QUALIFY row_number() OVER (PARTITION BY team ORDER BY id DESC) = 1 ORDER BY id

--- groups and windows
-- = eng|3|3
-- = ops|2|5
-- = ~|1|6
SELECT team, count(*) AS n, sum(count(*)) OVER (ORDER BY team) AS s FROM staff GROUP BY team ORDER BY team

--- elements of lists are rows
-- = 1|a
-- = 1|b
-- = 5|c
-- = 5|~
SELECT id, unnest(tags) AS tag FROM sales WHERE id IN (1, 2, 5) ORDER BY id, tag

--- lists have elements
-- = 1|2|a
-- = 2|0|~
-- = 3|~|~
-- = 4|1|a
-- = 5|2|c
-- = 6|1|b
-- = 7|1|a
-- = 8|~|~
SELECT id, array_length(tags) AS n, tags[1] AS first FROM sales ORDER BY id

--- rows with a list that has it
-- = 1
-- = 4
-- = 7
SELECT id FROM sales WHERE array_has(tags, 'a') ORDER BY id

--- NULL is put in its place
-- = 1|eng|5200.50
-- = 2|eng|4100.00
-- = 3|ops|3999.99
-- = 4|ops|0.00
-- = 5|none|4100.00
-- = 6|eng|10.05
SELECT id, coalesce(team, 'none') AS t, coalesce(salary, 0) AS s FROM staff ORDER BY id

--- cases by columns
-- = 1|high
-- = 2|mid
-- = 3|mid
-- = 4|none
-- = 5|mid
-- = 6|low
SELECT id, CASE WHEN salary >= 5000 THEN 'high' WHEN salary >= 1000 THEN 'mid' WHEN salary IS NULL THEN 'none' ELSE 'low' END AS c FROM staff ORDER BY id

--- columns into rows
-- = 3|3
SELECT count(CASE WHEN active THEN 1 END) AS yes, sum(CASE WHEN active THEN 0 ELSE 1 END) AS no FROM staff

--- names in quotes
-- = 1|Ada
SELECT id AS "The Id", name AS "SELECT" FROM staff WHERE id = 1

--- names in capital letters
-- = 2|Bob
SELECT ID, Name FROM STAFF WHERE Id = 2

--- names with their schema
-- = 1
SELECT public.staff.id FROM public.staff ORDER BY 1 LIMIT 1

--- all of one table
-- = 6|O'Neil, "Mac"|eng|10.05|1969-12-31|false|2|2
SELECT s.* FROM events e JOIN staff s ON s.id = e.staff WHERE e.id = 5

--- comments are left out
-- = 1
SELECT /* a comment */ id FROM staff -- another
WHERE id = 1

--- texts with quotes
-- = O'Neil, "Mac"
SELECT name FROM staff WHERE name = 'O''Neil, "Mac"'

--- texts of other alphabets
-- = 3|5|ÇELIK
SELECT id, length(name) AS n, upper(name) AS u FROM staff WHERE name LIKE 'Ç%'

--- numbers of rows by condition
-- = 3
SELECT sum(CAST(active AS int)) AS n FROM staff

--- sorted by a case
-- = 3
-- = 4
-- = 1
-- = 2
-- = 6
-- = 5
SELECT id FROM staff ORDER BY CASE team WHEN 'ops' THEN 1 WHEN 'eng' THEN 2 ELSE 3 END, id

--- the greatest of each
-- = eng|Ada
-- = ops|Çelik
SELECT team, name FROM staff s WHERE salary = (SELECT max(salary) FROM staff x WHERE x.team = s.team) ORDER BY team

--- the tenth of a total
-- = 13.999|13.9990000000|2
SELECT sum(amount) * 0.1 AS a, sum(amount) / 10 AS b, sum(qty) / 4 AS c FROM sales WHERE id < 5

--- correlations
-- = 1|2
SELECT corr(id, id * 2) AS a, regr_slope(id * 2, id) AS b FROM staff

--- bits of groups
-- = 0|7|7
SELECT bit_and(id) AS a, bit_or(id) AS b, bit_xor(id) AS c FROM staff

--- rows by a text's length
-- = 3|3
-- = 4|1
-- = 5|1
-- = 13|1
SELECT length(name) AS n, count(*) AS c FROM staff GROUP BY length(name) ORDER BY n

--- a zero that another condition leaves out
-- = 1
-- = 2
SELECT id FROM sales WHERE qty <> 0 AND 10 / qty > 3 ORDER BY id

--- a zero that is looked for
-- = 1
-- = 2
-- = 8
SELECT id FROM sales WHERE qty = 0 OR 10 / qty > 3 ORDER BY id

--- neither a zero nor a small number
-- = 3
-- = 4
-- = 6
-- = 7
SELECT id FROM sales WHERE NOT (qty = 0 OR 10 / qty > 3) ORDER BY id

--- conditions that are selected, NULL among them
-- = 1|true|true
-- = 2|true|true
-- = 3|false|false
-- = 4|false|false
-- = 5|~|~
-- = 6|false|false
-- = 7|false|false
-- = 8|false|true
SELECT id, qty <> 0 AND 10 / qty > 3 AS a, qty = 0 OR 10 / qty > 3 AS b FROM sales ORDER BY id

--- a zero in a case
-- = 1|10|much|10|10
-- = 2|5|much|5|5
-- = 3|3|little|3|3
-- = 4|3|little|3|3
-- = 5|~|little|-1|~
-- = 6|-10|little|-10|-10
-- = 7|0|little|0|0
-- = 8|~|little|-1|0
SELECT id, CASE WHEN qty <> 0 THEN 10 / qty END AS a, CASE WHEN qty <> 0 AND 10 / qty > 3 THEN 'much' ELSE 'little' END AS b, coalesce(10 / nullif(qty, 0), -1) AS c, coalesce(CASE WHEN qty = 0 THEN 0 END, 10 / qty) AS d FROM sales ORDER BY id

--- an hour that clocks leave out beside what leaves out its row
-- = 2
SELECT n FROM (VALUES (1, TIMESTAMP '2026-03-29 02:30:00'), (2, TIMESTAMP '2026-03-29 04:30:00')) AS v(n, m) WHERE arrow_cast(m, 'Timestamp(ns, "Europe/Berlin")') IS NOT NULL AND n <> 1

--- a zero that an aggregate's filter leaves out
-- = 11|10|5
SELECT sum(10 / qty) FILTER (WHERE qty <> 0) AS a, max(10 / qty) FILTER (WHERE qty <> 0) AS b, count(10 / qty) FILTER (WHERE qty > 0) AS c FROM sales

--- a zero by which an aggregate would sort what its filter leaves out
-- = 6,7,3,4,2,1
SELECT string_agg(CAST(id AS text), ',' ORDER BY 10 / qty, id) FILTER (WHERE qty <> 0) AS a FROM sales

--- a zero that an aggregate's filter leaves out of a group
-- = 1|15
-- = 2|6
-- = 3|~
-- = 6|-10
-- = ~|~
SELECT staff, sum(10 / qty) FILTER (WHERE qty <> 0) AS a FROM sales GROUP BY staff ORDER BY staff

--- a zero among groups
-- = 1
-- = 2
SELECT staff FROM sales GROUP BY staff HAVING sum(qty) <> 0 AND 100 / sum(qty) > 10 ORDER BY staff

--- a zero beside a join
-- = 1
-- = 2
SELECT s.id FROM staff p JOIN sales s ON p.id = s.staff AND s.qty <> 0 AND p.grade / s.qty > 3 ORDER BY s.id

--- a zero beside an outer join
-- = 1|1
-- = 1|2
-- = 2|~
-- = 3|~
-- = 4|~
-- = 5|~
-- = 6|~
SELECT p.id, s.id AS sale FROM staff p LEFT JOIN sales s ON p.id = s.staff AND s.qty <> 0 AND p.grade / s.qty > 3 ORDER BY p.id, sale

--- a zero beside a join that compares all with all
-- = 0|0
-- = 0|1
-- = 0|2
-- = 1|0
-- = 1|1
SELECT a.n, b.n AS m FROM (VALUES (0), (1), (2)) AS a(n) JOIN (VALUES (0), (1), (2)) AS b(n) ON a.n = 0 OR 10 / a.n > b.n + 8 ORDER BY a.n, m

--- a zero beside an outer join that compares all with all
-- = 0|~
-- = 1|0
-- = 1|1
-- = 2|~
SELECT a.n, b.n AS m FROM (VALUES (0), (1), (2)) AS a(n) LEFT JOIN (VALUES (0), (1), (2)) AS b(n) ON a.n <> 0 AND 10 / a.n > b.n + 8 ORDER BY a.n, m

--- a zero is left out before anything is computed that is selected
-- = 2|-6
-- = 10|107
-- = 12|~
SELECT grade, 100 / (grade - 9) + id + boss AS a FROM staff WHERE grade <> 9 ORDER BY grade

--- a zero that a subquery leaves out
-- = 1|10
-- = 2|5
SELECT id, r FROM (SELECT id, 10 / qty AS r FROM sales WHERE qty <> 0) AS x WHERE r > 3 ORDER BY id

--- texts that are numbers, and among those no zero
-- = 2
SELECT a FROM (VALUES ('2'), ('0'), ('x'), (NULL)) AS v(a) WHERE a ~ '^[0-9]+$' AND CAST(a AS bigint) <> 0 AND 10 / CAST(a AS bigint) > 3

--- names that are numbers
-- none
SELECT id FROM staff WHERE name ~ '^[0-9]+$' AND CAST(name AS bigint) > 3
