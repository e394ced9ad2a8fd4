Statements with parameters, as `values.sql` has it. A line `-- :KIND VALUE` for each: days and microseconds since 1970 where it is a date or a moment, and `null`.

--- a whole number
-- :integer 3
-- = 3
-- = 4
-- = 5
-- = 6
SELECT id FROM staff WHERE id >= $1 ORDER BY id

--- a decimal is compared to the digit
-- :decimal 19.99
-- = 3
-- = 4
SELECT id FROM sales WHERE amount = $1 ORDER BY id

--- a decimal with more digits than its column
-- :decimal 19.989
-- = 3
-- = 4
SELECT id FROM sales WHERE amount > $1 AND amount < 20 ORDER BY id

--- a float
-- :float 0.1
-- = 1
SELECT id FROM sales WHERE price = $1 ORDER BY id

--- a float beside decimals
-- :float 19.99
-- = 3
-- = 4
SELECT id FROM sales WHERE amount = $1 ORDER BY id

--- a text
-- :text O'Neil, "Mac"
-- = 6
SELECT id FROM staff WHERE name = $1 ORDER BY id

--- a pattern
-- :text %a%
-- = 1
-- = 4
-- = 6
SELECT id FROM staff WHERE name LIKE $1 ORDER BY id

--- a part of a pattern
-- :text 100%
-- = 5
SELECT id FROM events WHERE kind LIKE '%' || $1 || '%' ORDER BY id

--- a boolean
-- :boolean false
-- = 3
-- = 6
SELECT id FROM staff WHERE active = $1 ORDER BY id

--- a date
-- :date 20484
-- = 1
-- = 2
-- = 3
-- = 6
SELECT id FROM sales WHERE day <= $1 ORDER BY id

--- a date that is moved
-- :date 20484
-- = 2026-02-28|2026-01-30
SELECT $1 + INTERVAL '1 month' AS later, $1 - 1 AS before

--- a moment
-- :timestamp 1767225600000000
-- = 2
-- = 5
SELECT id FROM events WHERE "at" > $1 ORDER BY id

--- a moment without a zone, finer than its column
-- :local 1767225600000500
-- = 2
-- = 3
-- = 4
-- = 5
SELECT id FROM sales WHERE at > $1 ORDER BY id

--- a filter that may be left out
-- :text null
-- = 6
SELECT count(*) AS n FROM staff WHERE $1 IS NULL OR team = $1

--- a filter that is not left out
-- :text eng
-- = 3
SELECT count(*) AS n FROM staff WHERE $1 IS NULL OR team = $1

--- NULL equals nothing
-- :integer null
-- = 0
SELECT count(*) AS n FROM staff WHERE id = $1

--- NULL in its place
-- :decimal null
-- = 1|5200.50
-- = 2|4100.00
SELECT id, coalesce($1, salary) AS s FROM staff WHERE id < 3 ORDER BY id

--- a list
-- :integer 1
-- :integer 4
-- = 1
-- = 4
SELECT id FROM staff WHERE id IN ($1, $2) ORDER BY id

--- a range
-- :decimal 0
-- :decimal 100
-- = 1
-- = 2
-- = 3
-- = 4
-- = 8
SELECT id FROM sales WHERE amount BETWEEN $1 AND $2 ORDER BY id

--- a page
-- :integer 2
-- :integer 1
-- = 2
-- = 3
SELECT id FROM staff ORDER BY id LIMIT $1 OFFSET $2

--- what is behind a row
-- :text ops
-- :integer 3
-- = 4
SELECT id FROM staff WHERE (team, id) > ($1, $2) ORDER BY id

--- whole numbers are divided by a decimal
-- :decimal 2.5
-- = 8.4000000000
SELECT sum(id) / $1 AS a FROM staff

--- whole numbers are divided by one
-- :integer 4
-- = 5|1
SELECT sum(id) / $1 AS a, sum(id) % $1 AS b FROM staff

--- a decimal keeps its digits
-- :decimal 12345678901234567890.123456789
-- = 12345678901234567891.123456789|-12345678901234567890.123456789
SELECT $1 + 1 AS a, -$1 AS b

--- a text is told as it is
-- :text '; DROP TABLE staff; --
-- = '; DROP TABLE staff; --|23
SELECT $1 AS a, length($1) AS n

--- twice
-- :integer 5
-- = 10|10
SELECT $1 + $1 AS a, $1 * 2 AS b

--- a choice of columns
-- :text salary
-- = 17410.54
SELECT sum(CASE $1 WHEN 'salary' THEN salary WHEN 'grade' THEN grade END) AS s FROM staff

--- an order by a parameter
-- :boolean true
-- = 6
-- = 5
-- = 4
-- = 3
-- = 2
-- = 1
SELECT id FROM staff ORDER BY CASE WHEN $1 THEN -id ELSE id END

--- a number of days
-- :integer 30
-- = 3
-- = 4
-- = 5
-- = 7
SELECT id FROM sales WHERE day > DATE '2026-03-01' - $1 ORDER BY id

--- a part of a day
-- :text month
-- = 2026-11-01T00:00:00.000000
SELECT date_trunc($1, TIMESTAMP '2026-11-28 12:00:00') AS m

--- as many as are more
-- :float 0
-- = 5
SELECT count(*) AS n FROM sales WHERE price > $1

--- what is not equal
-- :text eng
-- = 3
-- = 4
SELECT id FROM staff WHERE team <> $1 ORDER BY id

--- what is distinct from
-- :text eng
-- = 3
-- = 4
-- = 5
SELECT id FROM staff WHERE team IS DISTINCT FROM $1 ORDER BY id

--- a condition on groups
-- :integer 2
-- = eng
-- = ops
SELECT team FROM staff GROUP BY team HAVING count(*) >= $1 ORDER BY team

--- in a subquery
-- :text buy
-- = Ada
-- = Bob
SELECT name FROM staff WHERE id IN (SELECT staff FROM events WHERE kind = $1) ORDER BY id

--- a moment and a zone are given
-- :timestamp 1767268800000000
-- :text Europe/Berlin
-- = 2026-01-01T13:00:00.000000
SELECT $1 AT TIME ZONE $2 AS a

--- clocks and a zone are given
-- :local 1767268800000000
-- :text Europe/Berlin
-- = 2026-01-01T11:00:00.000000Z
SELECT $1 AT TIME ZONE $2 AS a

--- a text is given for a moment
-- :text 2026-01-01 12:00:00
-- = 2026-01-01T13:00:00.000000
SELECT $1 AT TIME ZONE 'Europe/Berlin' AS a
