-- What the statements of this folder are asked of.

CREATE TYPE side AS ENUM ('home', 'away', 'neutral');
CREATE TYPE place AS (city text, zip integer, at point);
CREATE DOMAIN score AS numeric(6, 3) CHECK (VALUE >= 0);

CREATE TABLE matches (
    id integer PRIMARY KEY,
    team text NOT NULL,
    rival text,
    goals smallint,
    views bigint NOT NULL,
    fee numeric(12, 2),
    ratio real,
    weight double precision,
    played timestamptz NOT NULL,
    shown timestamp NOT NULL,
    day date NOT NULL,
    kick_off time NOT NULL,
    side side NOT NULL,
    mark score,
    key uuid,
    tags text[],
    notes jsonb,
    seat place,
    is_final boolean
);
INSERT INTO matches
SELECT n,
    (ARRAY['Ajax', 'Benfica', 'Celtic', 'Dynamo', 'Évian'])[n % 5 + 1],
    CASE WHEN n % 7 > 0 THEN (ARRAY['Ajax', 'Benfica', 'Celtic', 'Dynamo', 'Évian'])[(n + 2) % 5 + 1] END,
    CASE WHEN n % 11 > 0 THEN n % 6 END,
    9007199254740991 + n,
    CASE WHEN n % 13 > 0 THEN n * 1234.5678 END,
    n / 7.0,
    CASE WHEN n % 17 > 0 THEN n / 9.0 END,
    timestamptz '2026-02-25 18:30:00.000001+00' + n * interval '17 hours 13 minutes',
    timestamp '2026-02-25 20:15:30' + n * interval '1 day 1 second',
    date '2026-02-25' + n,
    time '12:00:00' + n * interval '11 minutes',
    (ARRAY['home', 'away', 'neutral'])[n % 3 + 1]::side,
    CASE WHEN n % 4 > 0 THEN n / 3.0 END,
    CASE WHEN n % 5 > 0 THEN md5(n::text)::uuid END,
    CASE WHEN n % 6 > 0 THEN ARRAY['t' || n % 4, 'a, "b"', NULL] END,
    CASE WHEN n % 8 > 0 THEN jsonb_build_object('n', n, 'list', jsonb_build_array(n, n * 2, NULL), 'deep', jsonb_build_object('er', jsonb_build_object('est', 'x' || n))) END,
    CASE WHEN n % 9 > 0 THEN row('Town ' || n % 3, 10000 + n, point(n, -n))::place END,
    CASE n % 3 WHEN 0 THEN true WHEN 1 THEN false END
FROM generate_series(1, 60) AS n;
CREATE INDEX matches_of ON matches (team, day);

CREATE TABLE staff (id integer PRIMARY KEY, name text NOT NULL, boss integer REFERENCES staff, pay numeric(9, 2) NOT NULL);
INSERT INTO staff VALUES (1, 'Ann', NULL, 9000), (2, 'Bob', 1, 5000.5), (3, 'Cid', 1, 5000.50), (4, 'Dee', 2, 3000), (5, 'Eve', 2, 3000.01), (6, 'Fay', 3, 1234.56), (7, 'Gil', 6, 0);

-- A circle, and a way out of it.
CREATE TABLE roads (origin integer NOT NULL, target integer NOT NULL, km numeric NOT NULL);
INSERT INTO roads VALUES (1, 2, 1.5), (2, 3, 2.25), (3, 1, 0.125), (3, 4, 10), (4, 5, 1e3);

CREATE TABLE documents (
    id integer PRIMARY KEY,
    title text NOT NULL,
    body text NOT NULL,
    words tsvector GENERATED ALWAYS AS (setweight(to_tsvector('english', title), 'A') || setweight(to_tsvector('english', body), 'B')) STORED
);
INSERT INTO documents (id, title, body) VALUES
    (1, 'Cats and dogs', 'The quick brown cats were running after lazy dogs.'),
    (2, 'Dogs', 'A dog sleeps; "nobody" knows why, not even the cat.'),
    (3, 'Nothing', 'Rain, rain and rain again.');

CREATE TABLE bookings (id integer PRIMARY KEY, room text NOT NULL, during tsrange NOT NULL, guests int4range NOT NULL);
INSERT INTO bookings VALUES
    (1, 'red', '[2026-03-01 10:00,2026-03-01 12:00)', '[1,4]'),
    (2, 'red', '[2026-03-01 12:00,)', 'empty'),
    (3, 'blue', '(,2026-03-01 11:00]', '(0,9)');

CREATE TABLE texts (id integer PRIMARY KEY, v text);
INSERT INTO texts VALUES (1, ''), (2, NULL), (3, 'NULL'), (4, ' a '), (5, 'a,"b"'), (6, E'two\nlines'), (7, E'three\r\nlines\r'), (8, E'\ttab\\'), (9, 'größe 漢字 🦀'), (10, 'a''b'), (11, '\x00'), (12, 'É'), (13, E'e\u0301');

CREATE TABLE "Odd names" ("Id" integer PRIMARY KEY, "ID" text NOT NULL, "a, b" text, "say ""hi""" text, "größe" numeric, "select" boolean);
INSERT INTO "Odd names" VALUES (1, 'x', 'comma', 'quote', 1.80, true), (2, 'y', NULL, '', NULL, false);

CREATE TABLE empty (id integer, v text, n numeric, at timestamptz, list integer[]);

CREATE TABLE parts (id integer NOT NULL, month date NOT NULL, n integer) PARTITION BY RANGE (month);
CREATE TABLE parts_of_january PARTITION OF parts FOR VALUES FROM ('2026-01-01') TO ('2026-02-01');
CREATE TABLE parts_of_others PARTITION OF parts DEFAULT;
INSERT INTO parts SELECT n, date '2026-01-15' + n * 10, n * n FROM generate_series(0, 5) AS n;

CREATE VIEW totals AS SELECT team, sum(goals) AS goals FROM matches GROUP BY team;
CREATE MATERIALIZED VIEW kept AS SELECT team, max(fee) AS fee FROM matches GROUP BY team;

CREATE SEQUENCE tickets;
CREATE FUNCTION doubled(integer) RETURNS integer LANGUAGE sql IMMUTABLE AS $$ SELECT $1 * 2 $$;
CREATE FUNCTION of_team(wanted text) RETURNS TABLE (id integer, goals smallint) LANGUAGE sql STABLE AS $$ SELECT m.id, m.goals FROM matches AS m WHERE m.team = wanted $$;
CREATE FUNCTION writes() RETURNS integer LANGUAGE sql AS $$ DELETE FROM staff WHERE id = 7 RETURNING id $$;
CREATE FUNCTION writes_later() RETURNS integer LANGUAGE plpgsql AS $$ BEGIN EXECUTE 'UPDATE staff SET pay = 0'; RETURN 1; END $$;
CREATE FUNCTION complains() RETURNS integer LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'closed on sundays' USING ERRCODE = 'SK001'; END $$;
CREATE PROCEDURE clears() LANGUAGE sql AS $$ DELETE FROM staff $$;
