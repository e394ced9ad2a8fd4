-- What the statements of this folder are asked of.

CREATE SCHEMA breadth;
USE memory.breadth;
CREATE TYPE side AS ENUM ('home', 'away', 'neutral', 'it''s, "there"');

CREATE TABLE matches AS
SELECT n::INTEGER AS id,
    ['Ajax', 'Benfica', 'Celtic', 'Dynamo', 'Évian'][n % 5 + 1] AS team,
    CASE WHEN n % 7 > 0 THEN ['Ajax', 'Benfica', 'Celtic', 'Dynamo', 'Évian'][(n + 2) % 5 + 1] END AS rival,
    CASE WHEN n % 11 > 0 THEN n % 6 END::SMALLINT AS goals,
    9007199254740991 + n AS views,
    CASE WHEN n % 13 > 0 THEN n * 1234.5678 END::DECIMAL(12, 2) AS fee,
    (n / 7)::FLOAT AS ratio,
    CASE WHEN n % 17 > 0 THEN n / 9 END::DOUBLE AS weight,
    TIMESTAMPTZ '2026-02-25 18:30:00.000001+00' + to_minutes(n * 1033) AS played,
    TIMESTAMP '2026-02-25 20:15:30' + to_seconds(n * 86401) AS shown,
    DATE '2026-02-25' + n::INTEGER AS day,
    TIME '12:00:00' + to_minutes(n * 11) AS kick_off,
    ['home', 'away', 'neutral'][n % 3 + 1]::side AS side,
    CASE WHEN n % 5 > 0 THEN md5(n::VARCHAR)::UUID END AS key,
    CASE WHEN n % 6 > 0 THEN ['t' || n % 4, 'a, "b"', NULL] END AS tags,
    CASE WHEN n % 8 > 0 THEN json_object('n', n, 'list', [n, n * 2, NULL], 'deep', json_object('er', 'x' || n)) END AS notes,
    CASE WHEN n % 9 > 0 THEN {'city': 'Town ' || n % 3, 'zip': (10000 + n)::INTEGER, 'spot': [n / 2, -n]} END AS seat,
    CASE n % 3 WHEN 0 THEN true WHEN 1 THEN false END AS is_final
FROM range(1, 61) AS r (n);

CREATE TABLE staff (id INTEGER PRIMARY KEY, name VARCHAR NOT NULL, boss INTEGER, pay DECIMAL(9, 2) NOT NULL);
INSERT INTO staff VALUES (1, 'Ann', NULL, 9000), (2, 'Bob', 1, 5000.5), (3, 'Cid', 1, 5000.50), (4, 'Dee', 2, 3000), (5, 'Eve', 2, 3000.01), (6, 'Fay', 3, 1234.56), (7, 'Gil', 6, 0);

-- A circle, and a way out of it.
CREATE TABLE roads (origin INTEGER NOT NULL, target INTEGER NOT NULL, km DECIMAL(9, 3) NOT NULL);
INSERT INTO roads VALUES (1, 2, 1.5), (2, 3, 2.25), (3, 1, 0.125), (3, 4, 10), (4, 5, 1000);

CREATE TABLE prices (item VARCHAR NOT NULL, since TIMESTAMP NOT NULL, price DECIMAL(8, 3) NOT NULL);
INSERT INTO prices VALUES ('tea', '2026-01-01 00:00:00', 1.5), ('tea', '2026-01-10 12:00:00', 1.625), ('cake', '2026-01-05 00:00:00', 3);
CREATE TABLE orders (id INTEGER NOT NULL, item VARCHAR NOT NULL, placed TIMESTAMP NOT NULL, n INTEGER NOT NULL);
INSERT INTO orders VALUES (1, 'tea', '2026-01-10 11:59:59.999999', 2), (2, 'tea', '2026-01-10 12:00:00', 3), (3, 'cake', '2026-01-04 00:00:00', 1), (4, 'cake', '2026-02-01 00:00:00', 4), (5, 'juice', '2026-02-01 00:00:00', 5);

CREATE TABLE texts (id INTEGER PRIMARY KEY, v VARCHAR);
INSERT INTO texts VALUES (1, ''), (2, NULL), (3, 'NULL'), (4, ' a '), (5, 'a,"b"'), (6, 'two' || chr(10) || 'lines'), (7, 'three' || chr(13) || chr(10) || 'lines' || chr(13)), (8, chr(9) || 'tab\'),
    (9, 'größe 漢字 🦀'), (10, 'a''b'), (11, '\x00'), (12, 'É'), (13, 'e' || chr(769)), (14, 'a' || chr(160) || chr(8203) || 'b'), (15, 'nul' || chr(0) || 'within');

CREATE TABLE "Odd names" ("Id" INTEGER PRIMARY KEY, "ID 2" VARCHAR NOT NULL, "a, b" VARCHAR, "say ""hi""" VARCHAR, "größe" DECIMAL(5, 2), "select" BOOLEAN);
INSERT INTO "Odd names" VALUES (1, 'x', 'comma', 'quote', 1.80, true), (2, 'y', NULL, '', NULL, false);

CREATE TABLE empty (id INTEGER, v VARCHAR, n DECIMAL(5, 2), since TIMESTAMPTZ, list INTEGER[], seat STRUCT(a INTEGER));

CREATE VIEW totals AS SELECT team, sum(goals) AS goals FROM matches GROUP BY team;
CREATE VIEW files AS SELECT count(*) AS n FROM glob('/etc/host*');
CREATE SEQUENCE tickets;
CREATE MACRO doubled(x) AS x * 2;
CREATE MACRO of_team(wanted) AS TABLE SELECT id, goals FROM matches WHERE team = wanted;
