-- What SQLite keeps, and what a column becomes that holds it. breadth.rs says how this is read.

--- a value of each kind
SELECT 1 AS a, 1.5 AS b, 'text' AS c, x'00ff' AS d, NULL AS e, typeof(1) AS f, typeof(1.0) AS g, typeof(x'') AS h, typeof(NULL) AS i, TRUE AS j;

--- whole numbers at their ends
SELECT 9223372036854775807 AS a, -9223372036854775807 - 1 AS b, 0x7fffffffffffffff AS c, 0xffffffffffffffff AS d, 9223372036854775808 AS e, 9223372036854775807 + 1 AS f,
    1_000_000 AS g;

--- numbers as they are written
SELECT 0x1F + 1e2 + .5 + 1. AS a, 1e400 AS b, -1e400 AS c, 1e-400 AS d, -0.0 AS e, 5e-324 AS f, 1.7976931348623157e308 AS g, 0.1 + 0.2 AS h, 1e15 AS i, 1e16 AS j,
    123456789.125 AS k, 1e-5 AS l, 100.0 AS m, 1.0 / 3 AS n, 9007199254740993.0 AS o;

--- texts that a table of commas finds hard
SELECT id, v, length(v) AS n, v IS NULL AS missing, hex(v) AS bytes FROM texts;

--- texts of every length
WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 80), t AS MATERIALIZED (SELECT i AS id, substr(
    'abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ-+/_=abcdefghijklmnopqrst', 1, i) AS v FROM n)
    SELECT id, v, 'é' || v AS w, CAST(v AS BLOB) AS b FROM t;

--- texts of every length, compared
WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 62), t AS MATERIALIZED (SELECT i, substr('the same beginning of all of them', 1, i / 2) ||
    CASE i % 2 WHEN 0 THEN 'é' ELSE 'z' END || substr('and an end', 1, i % 11) AS v FROM n)
    SELECT x.i AS id, x.v, sum(x.v < y.v) AS below, sum(x.v = y.v) AS same, row_number() OVER (ORDER BY x.v) AS place FROM t AS x JOIN t AS y GROUP BY x.i, x.v;

--- a text with its end in the middle
SELECT 1 AS id, 'a' || char(0) || 'b' AS v, length('a' || char(0) || 'b') AS n;

--- ways to write a text and a name
SELECT 'it''s' AS a, "team" AS "b c", [rival] AS [d e], `goals` AS `f`, 'a' 'b' FROM matches WHERE id = 1;

--- bytes
SELECT x'' AS a, X'00FF' AS b, zeroblob(5) AS c, CAST('é' AS BLOB) AS d, typeof(randomblob(3)) AS e, unhex('00 ff', ' ') AS f, length(x'0102') AS n;

--- texts that are none are bytes
SELECT 1 AS id, CAST(x'ff41' AS TEXT) AS a, CAST(x'41' AS TEXT) AS b UNION ALL SELECT 2, CAST(x'42' AS TEXT), 'é';

--- columns hold what they say, or something else
SELECT id, number, price, flag, day, clock, shown, moment, zoned, document, bytes FROM mixtures;

--- columns of anything become documents
SELECT id, anything, flags, days, documents, huge FROM mixtures;

--- a mixture is what its rows make of it
SELECT id, anything, huge, number FROM mixtures WHERE id IN (1, 4);

--- whole numbers among others are exact
SELECT 1 AS id, 9007199254740993 AS a, 1 AS b UNION ALL SELECT 2, 0.5, 0.5 UNION ALL SELECT 3, NULL, 9007199254740992;

--- declared types of rows that are not there
SELECT id, number, price, flag, day, clock, shown, zoned, document, huge, bytes FROM mixtures WHERE id = 3;

--- all columns of the widest table
SELECT * FROM matches;

--- no row of anything
SELECT * FROM empty;

--- generated columns
SELECT n, twice, thrice, strict_text, twice + thrice AS sum FROM made;

--- names that must be quoted
SELECT "Id", "a, b", "say ""hi""", "größe", "select", "Id" + 1 AS "weiß nicht" FROM "Odd names";

--- names that nobody gave
SELECT count(*), max(goals), 1 + 1, 'x' || team FROM matches;

--- names in another case
SELECT ID, Team, GOALS FROM Matches WHERE iD < 4;

--- casts
SELECT CAST(3.7 AS INTEGER) AS a, CAST('12abc' AS INTEGER) AS b, CAST('1e3' AS REAL) AS c, CAST(1 AS TEXT) AS d, CAST('1.50' AS NUMERIC) AS e,
    CAST(1e300 AS INTEGER) AS f, CAST(x'31' AS INTEGER) AS g, CAST(0.1 AS TEXT) AS h, CAST(1.0 AS TEXT) AS i, CAST('x' AS REAL) AS j, CAST(1e21 AS TEXT) AS k;

--- signs of all kinds
SELECT 1 << 4 | 2 >> 1 AS a, ~1 AS b, 7 / 2 AS c, -7 / 2 AS d, 7.0 / 2 AS e, -7 % 3 AS f, 7.5 % 2 AS g, 1 / 0 AS h, 5 & 3 AS i, - -1 AS j, +'3' AS k,
    'a' || 1 || NULL AS l, 'a' || 1 || 1.0 AS m, 2 = 2.0 AS n, 1 == 1 AS o, 1 <> 2 AS p, 1 != 1 AS q, NOT 0 AS r, 1 -1 AS s, '10' + 5 AS t, 1 < 'a' AS u,
    'a' < x'00' AS v;

--- what is, and what is not
SELECT id, id IS 1 AS a, rival IS NOT NULL AS b, goals ISNULL AS c, goals NOTNULL AS d, goals NOT NULL AS e, goals IS NOT DISTINCT FROM 1 AS f, rival IS DISTINCT
    FROM 'Ajax' AS g, is_final IS TRUE AS h, is_final IS NOT FALSE AS i, goals BETWEEN 1 AND 3 AS j, team IN ('ajax', 'x') AS k, goals NOT IN (SELECT 1) AS l,
    NULL IN () AS m FROM matches WHERE id < 13;
