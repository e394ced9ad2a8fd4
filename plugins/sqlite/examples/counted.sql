-- What SQLite is counted with (see make): tables that sellers might have, and what they are asked. Each statement stands in one paragraph.
-- Those before the line "-- asked" fill the file; those behind it are asked again and again, each about as long as the others.

CREATE TABLE teams (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, city TEXT NOT NULL, founded INTEGER);

CREATE TABLE players (id INTEGER PRIMARY KEY, name TEXT NOT NULL, team TEXT NOT NULL, goals INTEGER NOT NULL, rating REAL NOT NULL, active BOOLEAN NOT NULL, born DATE, notes JSON, photo BLOB);

CREATE TABLE orders (id INTEGER PRIMARY KEY, customer INTEGER NOT NULL, status VARCHAR(1) NOT NULL, total DECIMAL(15,2) NOT NULL, placed DATE NOT NULL, priority VARCHAR(15) NOT NULL, comment VARCHAR(79));

CREATE TABLE items (order_id INTEGER NOT NULL, line INTEGER NOT NULL, product INTEGER NOT NULL, quantity DECIMAL(15,2) NOT NULL, price DECIMAL(15,2) NOT NULL, discount DECIMAL(15,2) NOT NULL, flag VARCHAR(1) NOT NULL, shipped DATE NOT NULL, mode VARCHAR(10) NOT NULL, PRIMARY KEY (order_id, line));

CREATE TABLE products (sku TEXT PRIMARY KEY, id INTEGER NOT NULL UNIQUE, name TEXT NOT NULL, category TEXT COLLATE NOCASE, size INTEGER, price NUMERIC) WITHOUT ROWID;

CREATE TABLE events (at TIMESTAMP NOT NULL, kind TEXT NOT NULL, value REAL, text TEXT);

INSERT INTO teams WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 40) SELECT i, 'Team ' || i, 'City ' || (i % 7), 1880 + i FROM n;

INSERT INTO players WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 40000)
    SELECT i, 'Player ' || i, 'Team ' || (i % 40), i % 40, (i % 100) / 10.0, i % 3 <> 0, CASE WHEN i % 9 THEN date('1980-01-01', '+' || (i * 7 % 9000) || ' days') END,
    CASE WHEN i % 5 = 0 THEN json_object('n', i, 'tags', json_array('a', i % 3, NULL), 'deep', json_object('name', 'é' || i)) END, CASE WHEN i % 50 = 0 THEN zeroblob(i % 900) END FROM n;

INSERT INTO orders WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 15000)
    SELECT i, i * 7919 % 1500, substr('OFP', i % 3 + 1, 1), (i * 104729 % 50000000) / 100.0, date('1992-01-01', '+' || (i * 31 % 2400) || ' days'), (i % 5 + 1) || '-' || substr('URGENT HIGH   MEDIUM LOW    NONE   ', i % 5 * 7 + 1, 7),
    'carefully ' || substr('special packages final deposits regular accounts', i % 30, 12) || ' sleep ' || i FROM n;

INSERT INTO items WITH RECURSIVE l(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM l WHERE i < 7)
    SELECT o.id, l.i, (o.id * 31 + l.i * 977) % 2000 + 1, (o.id + l.i) % 50 + 1, (o.id * 13 + l.i * 7 % 90000) / 100.0, (o.id + l.i) % 11 / 100.0, substr('ANR', (o.id + l.i) % 3 + 1, 1), date(o.placed, '+' || (l.i * 17) || ' days'),
    substr('AIR  MAIL SHIP TRUCKRAIL ', (o.id * 3 + l.i) % 5 * 5 + 1, 5) FROM orders AS o, l WHERE l.i <= o.id % 7 + 1;

INSERT INTO products WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 2000) SELECT printf('SKU-%05d', i), i, 'product ' || hex(i * 7), substr('Shoes Balls Shirts', i % 3 * 6 + 1, 6), i % 50, i * 1.25 FROM n;

INSERT INTO events WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 50000)
    SELECT datetime('2026-01-01', '+' || (i * 97 % 100000) || ' minutes'), substr('view buy  cart ', i * 7 % 3 * 5 + 1, 4), CASE WHEN i % 6 THEN i * 37 % 1000 / 7.0 END, CASE WHEN i % 4 THEN 'session ' || i * 31 % 977 END FROM n;

CREATE INDEX players_team ON players (team);

CREATE INDEX orders_customer ON orders (customer, placed);

CREATE INDEX items_product ON items (product);

CREATE INDEX events_at ON events (at);

CREATE VIEW open_orders AS SELECT * FROM orders WHERE status = 'O';

ANALYZE;

-- asked

SELECT id, name, team, goals, rating, active FROM players WHERE id = ?1;

SELECT id, name, team, goals, rating, active FROM players ORDER BY id LIMIT 1;

SELECT id, name, team, goals, rating, active FROM players ORDER BY id LIMIT 50;

SELECT id, name, team, goals, rating, active FROM players ORDER BY id LIMIT 1000;

SELECT * FROM (SELECT id, name, team, goals, rating, active FROM players) WHERE id > ?1 ORDER BY id LIMIT 101;

SELECT * FROM players ORDER BY id LIMIT 500;

SELECT * FROM products WHERE sku = printf('SKU-%05d', ?1);

SELECT sku, name, price FROM products ORDER BY sku LIMIT 200;

SELECT sum(goals) FROM players WHERE team = 'Team ' || ?1;

SELECT team, sum(goals) AS goals, avg(rating), count(*) FROM players GROUP BY team ORDER BY goals DESC, team;

SELECT goals, round(sum(rating), 2) FROM players WHERE team = 'Team ' || ?1 GROUP BY goals ORDER BY goals;

SELECT count(*) FROM players;

SELECT count(*), min(born), max(born), total(rating) FROM players WHERE active;

SELECT count(DISTINCT customer) FROM orders;

SELECT DISTINCT priority FROM orders ORDER BY priority;

SELECT id, name FROM players WHERE name LIKE '%999%' ORDER BY name LIMIT 50;

SELECT count(*) FROM orders WHERE comment LIKE '%special%' AND comment NOT LIKE '%x%';

SELECT id, total FROM orders ORDER BY total DESC, id LIMIT 100;

SELECT id, total FROM orders ORDER BY id LIMIT 20 OFFSET 5000;

SELECT * FROM orders WHERE customer = ?1 ORDER BY placed DESC;

SELECT * FROM orders WHERE placed BETWEEN '1995-03-01' AND '1995-03-31' AND status IN ('O', 'F');

SELECT id, total FROM open_orders WHERE (?1 IS NULL OR customer = ?1) AND total > 1000;

SELECT flag, mode, sum(quantity), sum(price), sum(price * (1 - discount)), avg(quantity), avg(discount), count(*) FROM items WHERE shipped <= date('1998-12-01', '-90 days') GROUP BY flag, mode ORDER BY flag, mode;

SELECT sum(price * discount) FROM items WHERE shipped >= '1994-01-01' AND shipped < date('1994-01-01', '+1 year') AND discount BETWEEN 0.05 AND 0.07 AND quantity < 24;

SELECT o.id, sum(i.price * (1 - i.discount)) AS revenue, o.placed FROM orders AS o JOIN items AS i ON i.order_id = o.id WHERE o.placed < '1995-03-15' AND i.shipped > '1995-03-15' GROUP BY o.id, o.placed ORDER BY revenue DESC, o.placed LIMIT 10;

SELECT p.category, strftime('%Y', o.placed) AS year, sum(i.price) FROM items AS i JOIN products AS p ON p.id = i.product JOIN orders AS o ON o.id = i.order_id WHERE p.name LIKE '%3%' GROUP BY 1, 2 ORDER BY 1, 2 DESC;

SELECT priority, count(*) FROM orders AS o WHERE placed >= '1993-07-01' AND placed < '1993-10-01' AND EXISTS (SELECT 1 FROM items AS i WHERE i.order_id = o.id AND i.discount > 0.05) GROUP BY priority ORDER BY priority;

SELECT count(*) FROM orders WHERE customer NOT IN (SELECT customer FROM orders WHERE status = 'P' AND total > 400000);

SELECT c.n, count(*) FROM (SELECT customer, count(*) AS n FROM orders GROUP BY customer) AS c GROUP BY c.n ORDER BY 2 DESC;

SELECT sum(i.price) / 7.0 FROM items AS i WHERE i.quantity < (SELECT 0.2 * avg(j.quantity) FROM items AS j WHERE j.product = i.product) AND i.product < 60;

SELECT p.id, count(i.line) FROM products AS p LEFT JOIN items AS i ON i.product = p.id AND i.flag = 'R' WHERE p.size < 10 GROUP BY p.id HAVING count(i.line) > 5;

SELECT mode, sum(CASE WHEN o.priority IN ('1-URGENT ', '2-HIGH   ') THEN 1 ELSE 0 END), sum(iif(o.status = 'O', 1, 0)) FROM orders AS o, items AS i WHERE o.id = i.order_id AND i.mode IN ('MAIL ', 'SHIP ') GROUP BY mode;

WITH monthly AS (SELECT substr(placed, 1, 7) AS month, sum(total) AS total FROM orders GROUP BY 1) SELECT month, total, sum(total) OVER (ORDER BY month), lag(total) OVER (ORDER BY month), rank() OVER (ORDER BY total DESC) FROM monthly ORDER BY month;

SELECT id, team, goals, row_number() OVER (PARTITION BY team ORDER BY goals DESC, id) AS place FROM players WHERE id < 3000 ORDER BY team, place;

WITH RECURSIVE days(day) AS (VALUES ('1995-01-01') UNION ALL SELECT date(day, '+1 day') FROM days WHERE day < '1995-03-31') SELECT day, (SELECT count(*) FROM orders WHERE placed = day AND id < 500) FROM days;

SELECT kind, strftime('%Y-%m-%d %H', at) AS hour, count(value), avg(value), group_concat(DISTINCT text) FROM events WHERE at >= '2026-01-05' AND at < '2026-01-07' GROUP BY kind, hour ORDER BY hour, kind;

SELECT at, value FROM events WHERE at >= '2026-02-01' ORDER BY at LIMIT 500;

SELECT kind, median(value), percentile(value, 90), max(value) - min(value) FROM events GROUP BY kind;

SELECT coalesce(text, 'none'), upper(kind), length(text), replace(text, 'session', 's'), instr(text, '9'), trim(kind), substr(text, 9) FROM events LIMIT 400;

SELECT abs(value), round(value, 1), sqrt(value), ln(value + 1), value % 10, CAST(value AS INTEGER), CAST(value AS TEXT), printf('%.2f', value), value IS NULL FROM events LIMIT 400;

SELECT json_extract(notes, '$.n'), notes ->> '$.deep.name', json_array_length(notes, '$.tags') FROM players WHERE notes IS NOT NULL LIMIT 300;

SELECT value, count(*) FROM players, json_each(players.notes, '$.tags') WHERE players.id < 2000 GROUP BY value;

SELECT id, hex(photo), length(photo) FROM players WHERE photo IS NOT NULL LIMIT 60;

SELECT id, born, julianday(born), unixepoch(born), date(born, 'start of month'), strftime('%j', born) FROM players WHERE born IS NOT NULL LIMIT 300;

SELECT p.name, t.name, t.city FROM players AS p JOIN teams AS t ON t.name = p.team WHERE t.city = 'City 3' AND p.rating > 8 ORDER BY t.name, p.name LIMIT 200;

SELECT name FROM teams UNION SELECT team FROM players WHERE goals > 35 ORDER BY 1;

SELECT customer FROM orders WHERE status = 'O' INTERSECT SELECT customer FROM orders WHERE status = 'F' EXCEPT SELECT customer FROM orders WHERE total > 499000;

SELECT category, count(*), max(price) FROM products WHERE category = 'BALLS ' OR size IN (3, 5, 7) GROUP BY category;

SELECT t.name, (SELECT max(rating) FROM players AS p WHERE p.team = t.name), (SELECT name FROM players AS p WHERE p.team = t.name ORDER BY goals DESC, id LIMIT 1) FROM teams AS t ORDER BY t.founded;

SELECT a.id, b.id FROM orders AS a JOIN orders AS b ON a.customer = b.customer AND a.id < b.id AND a.placed = b.placed LIMIT 100;

SELECT m.name, m.type, p.cid, p.name, p.type, p."notnull", p.pk FROM sqlite_schema AS m, pragma_table_info(m.name) AS p WHERE m.type IN ('table', 'view') ORDER BY m.name, p.cid;
