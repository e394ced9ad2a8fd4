-- What statements call. breadth.rs says how this is read.

--- texts
SELECT upper('äb') AS a, lower('ÄB') AS b, length('größe') AS c, octet_length('größe') AS d, substr('abcdef', 2, 3) AS e, substr('abcdef', -2) AS f, substring('abc',
    2) AS g, trim('  x ') AS h, ltrim('xxa', 'x') AS i, rtrim('axx', 'x') AS j, replace('aXbX', 'X', '--') AS k, instr('hello', 'l') AS l, hex('ab') AS m,
    quote('it''s') AS n, quote(x'00ff') AS o, quote(1.5) AS p, quote(NULL) AS q, char(72, 105, 8364) AS r, unicode('é') AS s, concat('a', NULL, 1) AS t, concat_ws(', ',
    'a', NULL, 'b') AS u, soundex('Robert') AS v, unistr('\u00e9') AS w;

--- texts that are made by a pattern
SELECT printf('%d|%5d|%-5d|%05d|%+d|%,d', 42, 42, 42, 42, 42, 1234567) AS a, format('%.3f|%10.2f|%e|%g|%G', 3.14159, 2.5, 12345.678, 0.0001, 1e20) AS b,
    printf('%s|%10s|%-10s|%.2s', 'abc', 'abc', 'abc', 'abc') AS c, printf('%q|%Q|%w', 'it''s', NULL, 'a"b') AS d, printf('%x|%X|%o|%c|%%', 255, 255, 8, 'z') AS e,
    printf('%!.17g', 0.1) AS f, printf('%.15g', 1.0 / 3) AS g, printf('%*d', 6, 7) AS h;

--- comparing with patterns
SELECT id, team, team LIKE 'a%' AS a, team LIKE '%!%' ESCAPE '!' AS b, team GLOB 'A*' AS c, team GLOB '[a-c]*' AS d, team NOT LIKE '%x' AS e, 'É' LIKE 'é' AS f,
    team = 'AJAX' AS g, rival = 'ajax' AS h, rival = 'ajax' COLLATE NOCASE AS i FROM matches WHERE id <= 10;

--- numbers
SELECT abs(-7) AS a, abs(-7.5) AS b, round(2.5) AS c, round(-2.5) AS d, round(1234.5678, 2) AS e, round(5) AS f, max(1, 2.5, -3) AS g, min('a', 1, x'00') AS h,
    sign(-3) AS i, sign(0.0) AS j, coalesce(NULL, 2) AS k, ifnull(NULL, 'x') AS l, nullif(1, 1) AS m, iif(1 > 2, 'a', 'b') AS n, iif(0, 'only') AS o,
    random() IS NOT NULL AS p, likely(1) AS q, total_changes() >= 0 AS r;

--- functions of mathematics, where they are exact
-- answers {"a": 4.0, "b": 1024.0, "c": 3.0, "d": -2.0, "e": 2.0, "f": 8.0, "g": 1.0, "h": 1.0, "i": 0.0, "j": 3, "k": 2, "l": 180.0, "m": 3.141592653589793, "n": 2.0, "o": 1.4142135623730951}
SELECT sqrt(16) AS a, power(2, 10) AS b, ceil(2.1) AS c, floor(-1.5) AS d, log10(100) AS e, log(2, 256) AS f, cos(0) AS g, exp(0) AS h, sin(0) AS i, ceiling(3) AS j,
    trunc(2) AS k, degrees(pi()) AS l, pi() AS m, mod(8.0, 3) AS n, sqrt(2) AS o;

--- medians and percentiles
-- answers {"a": 1.0, "b": 4.0, "c": 3.25, "d": 2, "e": 2.5}
SELECT percentile(v, 0) AS a, percentile_cont(v, 1) AS b, percentile(v, 75) AS c, CAST(percentile_disc(v, 0.5) AS INTEGER) AS d, median(v) AS e FROM (VALUES (1), (2),
    (3), (4)) AS t, (SELECT column1 AS v FROM (VALUES (1), (2), (3), (4))) AS u WHERE t.column1 = 1;

--- medians of each group
-- answers {"boss": null, "middle": 9000.0}
-- answers {"boss": 1, "middle": 5000.375}
-- answers {"boss": 2, "middle": 3000.005}
-- answers {"boss": 3, "middle": 1234.56}
-- answers {"boss": 6, "middle": 0.0}
SELECT boss, median(pay) AS middle FROM staff GROUP BY boss;

--- days, reckoned with
SELECT date('2026-03-31', '-1 month') AS a, date('2026-01-31', '+1 month', 'floor') AS b, date('2026-02-28', 'start of month', '+1 month', '-1 day') AS c,
    datetime('2026-02-28 23:59:59', '+1 second') AS d, time('12:00', '+90 minutes') AS e, julianday('2026-02-28') - julianday('2026-02-01') AS f,
    strftime('%Y-%W-%j %H:%M:%f %s %w %u %G-%V %e %p %I', '2026-02-28 13:14:15.678') AS g, unixepoch('2026-01-01') AS h, datetime(1767225600, 'unixepoch') AS i,
    date('2026-02-28', 'weekday 1') AS j, timediff('2026-03-15', '2026-02-28 12:00') AS k, datetime('2026-01-01 00:00:00+02:00') AS l, unixepoch('2026-01-01 00:00:00.5',
    'subsec') AS m, datetime('2026-01-01T12:00:00.123', 'subsec') AS n, date('0000-01-01') AS o, date('9999-12-31', '+1 day') AS p, date('nonsense') AS q,
    datetime('now') IS NOT NULL AS r, CURRENT_DATE = date() AS s, date(2460000.5) AS t;

--- days of columns
SELECT id, day, strftime('%Y-%m', day) AS month, date(day, '+1 day') AS next, played, date(played) AS of, kick_off, seen, julianday(day) AS julian,
    unixepoch(played) / 86400 AS since FROM matches;

--- reaching into documents
SELECT id, notes -> 'list' AS a, notes ->> 'n' AS b, notes ->> '$.list[1]' AS c, notes -> '$.deep.er' AS d, json_extract(notes, '$.n', '$.deep.er.est') AS e,
    json_extract(notes, '$.deep.er.est') AS f, notes ->> '$.list[#-1]' AS g, json_type(notes, '$.list') AS h, json_array_length(notes, '$.list') AS i,
    json_valid(notes) AS j, notes FROM matches;

--- documents that are made
SELECT json_object('a', 1, 'b', json_array(1.5, NULL, 'x'), 'c', json('[1,2]')) AS a, json_array(1, 'two', NULL, 3.0, json('true')) AS b, json_quote('say "hi"') AS c,
    json('{ "a" : 1.10 }') AS d, json_insert('[1]', '$[#]', 2) AS e, json_set('{"a": 1}', '$.b', json('{"c": 2}')) AS f, json_replace('{"a": 1}', '$.a', 'x') AS g,
    json_remove('{"a": 1, "b": 2}', '$.a') AS h, json_patch('{"a": 1}', '{"a": null, "b": 2}') AS i, json_pretty('{"a":[1]}') AS j, json_valid('{a:1}', 2) AS k,
    json('{a: 0x10, }') AS l, json_error_position('{"a"') AS m, json(jsonb('{"a":[1]}')) AS n;

--- documents as bytes
SELECT jsonb('{"a": 1}') AS a, jsonb_array(1, 2) AS b, jsonb_extract('{"a": {"b": 1}}', '$.a') AS c, json_extract(jsonb('[7]'), '$[0]') AS d;

--- rows that become documents
SELECT boss, json_group_array(name ORDER BY id DESC) AS a, json_group_object(name, pay ORDER BY id) AS b, json_group_array(json_object('id',
    id) ORDER BY id) FILTER (WHERE pay > 2000) AS c FROM staff GROUP BY boss;

--- documents that become rows
SELECT e.key, e.value, e.type, e.atom, e.fullkey, e.path FROM json_each('[1, "x", null, 2.5, true, [3], {"a": 4}]') AS e;

--- each leaf of documents
SELECT t.id, t.key, t.value, t.type, t.fullkey FROM json_tree('{"a": [1, {"b": "c"}], "d": {}}') AS t WHERE t.atom IS NOT NULL OR t.type IN ('array', 'object');

--- each element of a column's documents
SELECT m.id, e.value AS v, e.key AS place FROM matches AS m, json_each(m.notes, '$.list') AS e WHERE m.id <= 10;

--- looking for words
SELECT rowid AS id, title, highlight(documents, 1, '<', '>') AS marked, snippet(documents, 1, '[', ']', '…', 4) AS cut FROM documents
    WHERE documents MATCH 'dog NOT lazy';

--- looking for words in many ways
SELECT 'prefix' AS how, group_concat(rowid ORDER BY rowid) AS found FROM documents WHERE documents MATCH 'ra*' UNION ALL SELECT 'phrase', group_concat(rowid)
    FROM documents WHERE documents MATCH '"quick brown"' UNION ALL SELECT 'column', group_concat(rowid) FROM documents WHERE documents MATCH 'title: dogs' UNION ALL
    SELECT 'near', group_concat(rowid) FROM documents WHERE documents MATCH 'NEAR(cats running, 3)' UNION ALL SELECT 'equals', group_concat(rowid) FROM documents
    WHERE title = 'Dogs' UNION ALL SELECT 'call', group_concat(rowid) FROM documents('running OR sleeping') UNION ALL SELECT 'first', group_concat(rowid) FROM documents
    WHERE documents MATCH '^rain';

--- words by how well they fit
SELECT rowid AS id, bm25(documents) AS score, rank, bm25(documents, 10.0, 1.0) AS weighted FROM documents WHERE documents MATCH 'dogs OR cats';

--- words, counted
SELECT term, doc, cnt FROM words;

--- places that overlap
SELECT id, name, west, east FROM places WHERE east >= 5.5 AND west <= 5.3 AND north > 0;

--- places, and their numbers
SELECT p.id, p.south, p.north, c.low, c.high FROM places AS p JOIN counts AS c ON c.id = p.id WHERE c.low < 8;

--- aggregates of all kinds
SELECT team, count(*) AS a, count(DISTINCT goals) AS b, sum(goals) AS c, total(goals) AS d, avg(goals) AS e, min(day) AS f, max(rival) AS g, sum(fee) AS h,
    avg(weight) AS i, group_concat(rival ORDER BY id) AS j, group_concat(DISTINCT goals) IS NOT NULL AS k, string_agg(id, '; ' ORDER BY id DESC) AS l,
    count(*) FILTER (WHERE is_final) AS m, sum(goals) FILTER (WHERE id > 1000) AS n FROM matches GROUP BY team;

--- aggregates of nothing
SELECT count(*) AS a, sum(n) AS b, total(n) AS c, avg(n) AS d, max(at) AS e, group_concat(v) AS f, json_group_array(v) AS g, count(v) AS h FROM empty;

--- sums that would lose digits
SELECT sum(v) AS a, total(v) AS b, avg(v) AS c FROM (SELECT column1 AS v FROM (VALUES (1e15), (0.1), (0.2), (-1e15), (0.7)));

--- what SQLite says of a table
SELECT name, type, "notnull", dflt_value, pk FROM pragma_table_info('staff');

--- what SQLite says of a file
SELECT type, name, tbl_name FROM sqlite_schema WHERE name IN ('matches', 'by_team', 'totals');
