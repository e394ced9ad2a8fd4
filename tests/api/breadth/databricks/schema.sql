CREATE SCHEMA breadth;
CREATE TABLE breadth.matches USING parquet AS
SELECT CAST(n AS INT) AS id,
    element_at(array('Ajax', 'Benfica', 'Celtic', 'Dynamo', 'Évian'), CAST(n % 5 + 1 AS INT)) AS team,
    CASE WHEN n % 7 > 0 THEN element_at(array('Ajax', 'Benfica', 'Celtic', 'Dynamo', 'Évian'), CAST((n + 2) % 5 + 1 AS INT)) END AS rival,
    CAST(CASE WHEN n % 11 > 0 THEN n % 6 END AS SMALLINT) AS goals,
    9007199254740991 + n AS views,
    CAST(CASE WHEN n % 13 > 0 THEN n * 1234.5678 END AS DECIMAL(12, 2)) AS fee,
    CAST(n / 7 AS FLOAT) AS ratio,
    CAST(CASE WHEN n % 17 > 0 THEN n / 9 END AS DOUBLE) AS weight,
    TIMESTAMP '2026-02-25 18:30:00.000001Z' + make_interval(0, 0, 0, 0, 0, CAST(n * 1033 AS INT)) AS played,
    TIMESTAMP_NTZ '2026-02-25 20:15:30' + make_interval(0, 0, 0, CAST(n AS INT), 0, 0, n) AS shown,
    date_add(DATE '2026-02-25', CAST(n AS INT)) AS day,
    element_at(array('home', 'away', 'neutral'), CAST(n % 3 + 1 AS INT)) AS side,
    CASE WHEN n % 6 > 0 THEN array('t' || n % 4, 'a, "b"', NULL) END AS tags,
    CASE WHEN n % 9 > 0 THEN named_struct('city', 'Town ' || n % 3, 'zip', CAST(10000 + n AS INT), 'spot', array(n / 2, CAST(-n AS DOUBLE))) END AS seat,
    CASE WHEN n % 8 > 0 THEN map('goals', n % 6, 'cards', CASE WHEN n % 2 = 0 THEN n END) END AS counts,
    CASE n % 3 WHEN 0 THEN true WHEN 1 THEN false END AS is_final
FROM range(1, 61) AS r (n);
CREATE TABLE breadth.staff (id INT NOT NULL, name STRING NOT NULL, boss INT, pay DECIMAL(9, 2) NOT NULL) USING parquet;
INSERT INTO breadth.staff VALUES (1, 'Ann', NULL, 9000), (2, 'Bob', 1, 5000.5), (3, 'Cid', 1, 5000.50), (4, 'Dee', 2, 3000), (5, 'Eve', 2, 3000.01), (6, 'Fay', 3, 1234.56), (7, 'Gil', 6, 0);
CREATE TABLE breadth.roads (origin INT NOT NULL, target INT NOT NULL, km DECIMAL(9, 3) NOT NULL) USING parquet;
INSERT INTO breadth.roads VALUES (1, 2, 1.5), (2, 3, 2.25), (3, 1, 0.125), (3, 4, 10), (4, 5, 1000);
CREATE TABLE breadth.texts (id INT, v STRING) USING parquet;
INSERT INTO breadth.texts VALUES (1, ''), (2, NULL), (3, 'NULL'), (4, ' a '), (5, 'a,"b"'), (6, 'two\nlines'), (7, 'three\r\nlines\r'), (8, '\ttab\\'), (9, 'größe 漢字 🦀'), (10, 'a\'b'), (11, r'\x00'), (12, 'É'), (13, 'e\u0301'), (14, 'a\u00a0\u200bb'), (15, 'nul\u0000within');
CREATE TABLE breadth.odd_names (Id INT, `ID 2` STRING, `a. b` STRING, `say "hi"` STRING, `größe` DECIMAL(5, 2), `select` BOOLEAN, `tick``` INT) USING json;
INSERT INTO breadth.odd_names VALUES (1, 'x', 'dot', 'quote', 1.80, true, 7), (2, 'y', NULL, '', NULL, false, NULL);
CREATE TABLE breadth.empty (id INT, v STRING, n DECIMAL(5, 2), since TIMESTAMP, list ARRAY<INT>, seat STRUCT<a: INT>) USING parquet;
CREATE TABLE breadth.fixed (id INT, code CHAR(4), name VARCHAR(6)) USING parquet;
INSERT INTO breadth.fixed VALUES (1, 'ab', 'cd'), (2, NULL, NULL), (3, 'abcd', 'efghij');
CREATE VIEW breadth.totals AS SELECT team, sum(goals) AS goals FROM breadth.matches GROUP BY team;
CREATE FUNCTION breadth.doubled(x INT) RETURNS INT RETURN x * 2;
CREATE FUNCTION breadth.of_team(wanted STRING) RETURNS TABLE (id INT, goals SMALLINT) RETURN SELECT id, goals FROM breadth.matches WHERE team = wanted;
