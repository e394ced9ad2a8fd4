-- What the statements of this folder are asked of.

CREATE TABLE matches (
    id INTEGER PRIMARY KEY,
    team TEXT NOT NULL COLLATE NOCASE,
    rival TEXT,
    goals INT,
    views BIGINT NOT NULL,
    fee DECIMAL(12, 2),
    weight REAL,
    day DATE NOT NULL,
    kick_off TIME,
    played DATETIME NOT NULL,
    seen TIMESTAMPTZ,
    is_final BOOLEAN,
    notes JSON,
    secret BLOB
);
WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 60)
INSERT INTO matches
SELECT n,
    substr('Ajax   BenficaCeltic Dynamo Évian  ', n % 5 * 7 + 1, 7),
    CASE WHEN n % 7 > 0 THEN trim(substr('Ajax   BenficaCeltic Dynamo Évian  ', (n + 2) % 5 * 7 + 1, 7)) END,
    CASE WHEN n % 11 > 0 THEN n % 6 END,
    9007199254740991 + n,
    CASE WHEN n % 13 > 0 THEN n * 1234.5 END,
    CASE WHEN n % 17 > 0 THEN n / 9.0 END,
    date('2026-02-25', '+' || n || ' days'),
    time('12:00:00', '+' || (n * 11) || ' minutes'),
    datetime('2026-02-25 18:30:00', '+' || (n * 17) || ' hours'),
    CASE WHEN n % 2 = 0 THEN datetime('2026-02-25 18:30:00', '+' || n || ' hours') || 'Z' END,
    CASE n % 3 WHEN 0 THEN 1 WHEN 1 THEN 0 END,
    CASE WHEN n % 8 > 0 THEN json_object('n', n, 'list', json_array(n, n * 2, NULL), 'deep', json_object('er', json_object('est', 'x' || n))) END,
    CASE WHEN n % 4 > 0 THEN unhex(printf('%02x00ff', n)) END
FROM n;
UPDATE matches SET team = trim(team);
CREATE INDEX by_team ON matches (team, day);
CREATE INDEX finals ON matches (day) WHERE is_final = 1;

CREATE TABLE staff (id INTEGER PRIMARY KEY, name TEXT NOT NULL, boss INTEGER REFERENCES staff, pay NUMERIC NOT NULL);
INSERT INTO staff VALUES (1, 'Ann', NULL, 9000), (2, 'Bob', 1, 5000.5), (3, 'Cid', 1, 5000.25), (4, 'Dee', 2, 3000), (5, 'Eve', 2, 3000.01), (6, 'Fay', 3, 1234.56), (7, 'Gil', 6, 0);

CREATE TABLE roads (origin INTEGER NOT NULL, target INTEGER NOT NULL, km REAL NOT NULL, PRIMARY KEY (origin, target)) WITHOUT ROWID;
INSERT INTO roads VALUES (1, 2, 1.5), (2, 3, 2.25), (3, 1, 0.125), (3, 4, 10), (4, 5, 1e3);

CREATE TABLE texts (id INTEGER PRIMARY KEY, v TEXT);
INSERT INTO texts VALUES (1, ''), (2, NULL), (3, 'NULL'), (4, ' a '), (5, 'a,"b"'), (6, 'two' || char(10) || 'lines'), (7, 'three' || char(13, 10) || 'lines' || char(13)), (8, char(9) || 'tab\'), (9, 'größe 漢字 🦀'), (10, 'a''b'), (11, '\x00'), (12, 'É'), (13, 'e' || char(769));

-- What columns hold beside what they say that they hold.
CREATE TABLE mixtures (
    id INTEGER PRIMARY KEY,
    anything,
    number NUMERIC,
    price DECIMAL(10, 2),
    flag BOOLEAN,
    flags BOOLEAN,
    day DATE,
    days DATE,
    clock TIME,
    shown DATETIME,
    moment TIMESTAMP,
    zoned TIMESTAMP WITH TIME ZONE,
    document JSON,
    documents JSON,
    huge INTEGER,
    bytes BLOB
);
INSERT INTO mixtures VALUES
    (1, 1, 1, 1, 1, 1, '2026-01-31', '2026-01-31', '12:00', '2026-01-31 12:00', '2026-01-31T12:00:00Z', '2026-01-31 12:00:00.5', '{"a" : 1.10}', '[1]', 9223372036854775807, x'00ff'),
    (2, 'text', 2.5, 2.5, 0, 2, '0001-01-01', 'soon', '23:59:59.999999', '2026-01-31T12:00:00.000001', '1969-12-31 23:59:59.5Z', '2026-01-31T12:00:00Z', '"x"', '{', 0.5, 'text'),
    (3, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
    (4, 0.1, 'many', 1e20, 1, 0, '9999-12-31', '2026-02-28', '00:00:00', '0001-01-01 00:00:00', '9999-12-31 23:59:59Z', '2026-01-31 12:00', 'null', 'null', -9223372036854775808, x''),
    (5, x'00ff', 3, 0.1, 0, 1, '2024-02-29', '2026-01-01', '12:00:00.5', '9999-12-31 23:59:59.999999', '2026-01-01 00:00Z', '2026-01-01T00:00:00.123Z', '  [1, 2 ]', '7', 1e300, x'ff');

CREATE TABLE "Odd names" ("Id" INTEGER PRIMARY KEY, "a, b" TEXT, "say ""hi""" TEXT, "größe" REAL, "select" INTEGER);
INSERT INTO "Odd names" VALUES (1, 'comma', 'quote', 1.80, 1), (2, NULL, '', NULL, 0);

CREATE TABLE empty (id INTEGER, v TEXT, n REAL, at DATETIME, flag BOOLEAN, list JSON);

CREATE TABLE made (n INTEGER, twice INTEGER GENERATED ALWAYS AS (n * 2) VIRTUAL, thrice INTEGER AS (n * 3) STORED, strict_text ANY);
INSERT INTO made (n, strict_text) VALUES (1, 'a'), (2, 'b');

CREATE VIEW totals AS SELECT team, sum(goals) AS goals FROM matches GROUP BY team;

CREATE VIRTUAL TABLE documents USING fts5(title, body, tokenize = 'porter unicode61');
INSERT INTO documents (rowid, title, body) VALUES
    (1, 'Cats and dogs', 'The quick brown cats were running after lazy dogs.'),
    (2, 'Dogs', 'A dog sleeps; "nobody" knows why, not even the cat.'),
    (3, 'Nothing', 'Rain, rain and rain again.');
CREATE VIRTUAL TABLE words USING fts5vocab('documents', 'row');

CREATE VIRTUAL TABLE places USING rtree(id, west, east, south, north, +name TEXT);
INSERT INTO places VALUES (1, 0, 1, 0, 1, 'origin'), (2, 5, 6.5, -1, 1, 'east'), (3, 5.25, 9, 4, 8, 'far');
CREATE VIRTUAL TABLE counts USING rtree_i32(id, low, high);
INSERT INTO counts VALUES (1, -5, 7), (2, 8, 100);
