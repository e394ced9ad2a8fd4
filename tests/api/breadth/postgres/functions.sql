-- What statements call: texts, patterns, times, documents, lists. breadth.rs says how this is read.

--- trimming from each side
SELECT trim(leading from '  x ') AS a, trim(trailing 'x' from 'axx') AS b, trim(both 'xy' from 'xyaxy') AS c, trim('  b ') AS d, ltrim('zzytest', 'xyz') AS e,
    rtrim('testxxzx', 'xyz') AS f, btrim(E'\x01a\x01'::bytea, E'\x01'::bytea) AS g;

--- parts of texts, in the words of the standard
SELECT substring('abcdef' from 2 for 3) AS a, substring('abcdef' from 4) AS b, substring('abcdef' for 2) AS c, substring('foobar' similar '%#"o_b#"%' escape '#') AS d,
    overlay('abcdef' placing 'XY' from 2 for 3) AS e,
    position('c' in 'abc') AS f, char_length('größe') AS g, octet_length('größe') AS h, bit_length('a') AS i, 'a' || NULL AS j, collation for ('a'::text) AS k;

--- parts of texts, in the server's words
SELECT left('abcde', -2) AS a, right('abcde', 2) AS b, split_part('a,b,c', ',', -1) AS c, lpad('7', 3, '0') AS d, rpad('ab', 5, 'xy') AS e, repeat('-', 3) AS f,
    reverse('abc') AS g, strpos('high', 'ig') AS h, substr('alphabet', 3, 2) AS i,
    translate('12345', '143', 'ax') AS j, initcap('hi THOMAS o''neil') AS k, upper('äß') AS l, lower('ÄSS') AS m, concat('a', NULL, 1, true) AS n, concat_ws(', ', 'a',
    NULL, 'b') AS o, replace('aXbX', 'X', '--') AS p, starts_with('alphabet', 'al') AS q;

--- texts that are made by a pattern
SELECT format('Hello %s, %1$s; %I = %L, %%', 'World', 'a col', NULL) AS a, format('|%10s|%-10s|%*s|', 'r', 'l', 5, 'w') AS b, to_hex(255) AS c, chr(8364) AS d,
    ascii('é') AS e, quote_ident('a b') AS f, quote_literal(E'o\'r\\') AS g, quote_nullable(NULL) AS h,
    md5('x') AS i, encode('\x00ff'::bytea, 'hex') AS j, encode('ab', 'base64') AS k, encode(E'\\001x', 'escape') AS l, normalize(U&'e\0301', NFC) AS m,
    'é' IS NFC NORMALIZED AS n, unistr('\0041') AS o;

--- numbers as texts
SELECT to_char(1234567.891, 'FM9,999,999.00') AS a, to_char(-12, 'S000') AS b, to_char(485, 'RN') AS c, to_char(0.5, '0.0EEEE') AS d, to_char(12.3, 'L99D9') AS e,
    to_char(5, '9th') AS f, to_char(interval '15h 2m', 'HH24:MI') AS g, to_char(1e10::float8, '999999999999') AS h;

--- comparing with patterns
SELECT id, team, team LIKE 'A%' AS a, team ILIKE '%AX' AS b, team NOT LIKE '%\_%' AS c, team LIKE '%!%' ESCAPE '!' AS d, team SIMILAR TO '(A|B)%' AS e,
    team ~ '^[A-C]' AS f, team ~* 'CELT' AS g, team !~ 'x$' AS h, team !~* 'BEN' AS i, team ^@ 'Dy' AS j, team ~~ 'E%' AS k FROM matches WHERE id <= 10;

--- taking apart by regular expressions
SELECT regexp_replace('foobarbaz', 'b(..)', 'X\1Y', 'g') AS a, regexp_match('foobarbequebaz', '(bar)(beque)') AS b, regexp_split_to_array('a1b22c', '\d+') AS c,
    substring('Thomas' from '...$') AS d, regexp_count('ababab', 'ab', 2) AS e,
    regexp_instr('abcdef', 'c(.)') AS f, regexp_substr('abcdef', 'c(.)(..)', 1, 1, '', 2) AS g, regexp_like('Hello', 'hello$', 'i') AS h, 'größe' ~ '^\w+$' AS i,
    regexp_replace(E'a\nb', '^b', 'c', 'n') AS j, 'abc' ~ '(?<=b)c' AS k;

--- each piece of a text
SELECT row_number() OVER () AS id, p.piece, m.found FROM regexp_split_to_table('a, b,c', ',\s*') AS p (piece) CROSS JOIN regexp_matches('x1y22', '(\d+)',
    'g') AS m (found);

--- days and months, cut and counted
SELECT date_trunc('month', timestamp '2026-02-28 13:14:15.5') AS a, date_trunc('day', timestamptz '2026-03-29 00:30:00+00', 'America/New_York') AS b,
    date_bin('15 minutes', timestamp '2026-01-01 12:34:56', timestamp '2000-01-01') AS c,
    date '2026-03-31' + interval '-1 month' AS d, date '2026-03-01' - date '2026-02-01' AS e, date '2026-01-31' + 7 AS f,
    timestamp '2026-03-01' - timestamp '2026-02-27 12:00' AS g, age(timestamp '2026-04-10', timestamp '1957-06-13') AS h,
    make_date(2026, 2, 28) AS i, make_time(8, 15, 23.5) AS j, make_timestamp(2026, 7, 15, 8, 15, 23.5) AS k, make_timestamptz(2026, 7, 15, 8, 15, 23.5,
    'Asia/Tokyo') AS l, to_timestamp(1284352323.5) AS m, to_date('05 Dec 2026', 'DD Mon YYYY') AS n;

--- fields of times
SELECT extract(epoch from timestamptz '2026-02-28 13:14:15.678901+00') AS a, extract(year from date '2026-02-28') AS b, extract(isodow from date '2026-03-01') AS c,
    extract(week from date '2026-12-31') AS d, extract(quarter from date '2026-02-28') AS e,
    extract(microseconds from time '01:02:03.5') AS f, extract(hour from interval '26 hours') AS g, date_part('doy', date '2026-02-28') AS h,
    extract(century from date '0044-03-15 BC') AS i, extract(julian from date '2026-01-01') AS j,
    extract(timezone from timestamptz '2026-01-01 00:00+02') AS k, extract(epoch from interval '1 year') AS l, extract(decade from date '2026-01-01') AS m,
    extract(dow from date '2026-03-01') AS n;

--- zones and the days on which clocks are changed
SELECT n AS id, t AT TIME ZONE 'Europe/Berlin' AS berlin, t AT TIME ZONE 'UTC' AS utc, (t AT TIME ZONE 'UTC') AT TIME ZONE 'America/New_York' AS meant, timezone('+05:30',
    t) AS offset_wise, t::time AS clock, t::date AS day, to_char(t, 'YYYY-MM-DD"T"HH24:MI:SS.US TZH:TZM') AS told
FROM (SELECT n, timestamptz '2026-03-29 00:00:00+00' + n * interval '30 minutes' AS t FROM generate_series(0, 4) AS n) AS s;

--- spans of time, reckoned with
SELECT interval '1 day' * 1.5 AS a, interval '1 month' / 2 AS b, -interval '1 hour' AS c, justify_hours(interval '27 hours') AS d, justify_days(interval '35 days') AS e,
    justify_interval(interval '1 mon -1 hour') AS f, interval '1 day' > interval '23 hours' AS g,
    sum(v) AS h, avg(v) AS i, max(v) AS j, (date '2026-01-01', interval '2 days') OVERLAPS (date '2026-01-02', date '2026-01-03') AS k, 900 * interval '1 second' AS l,
    time '05:00' - interval '2 hours' AS m, time '05:00' - time '03:00' AS n
FROM (VALUES (interval '1 day'), (interval '36 hours')) AS s (v);

--- times as texts
SELECT to_char(timestamp '2026-02-05 03:04:05.006007', 'Day, DD FMMonth YYYY HH12:MI:SS.MS am, IW, Q, J, DDD, FMDDth') AS a, to_timestamp('2026-02-28 13',
    'YYYY-MM-DD HH24') AS b, timestamptz '2026-01-01 00:00+00'::text AS c, date '2026-01-01'::text AS d, to_char(date '0044-03-15 BC', 'YYYY BC') AS e,
    interval '1 day 2 hours'::text AS f;

--- a day for each day
SELECT d, d::date AS day, extract(isodow from d) AS weekday, count(m.id) AS played FROM generate_series(timestamp '2026-02-24', timestamp '2026-03-10',
    interval '1 day') AS g (d) LEFT JOIN matches AS m ON m.day = g.d::date GROUP BY d;

--- reaching into documents
SELECT id, notes -> 'list' AS a, notes -> 'list' -> 1 AS b, notes ->> 'n' AS c, notes #> '{deep,er}' AS d, notes #>> '{deep,er,est}' AS e, notes['list'][0] AS f,
    (notes['n'])::int + 1 AS g, notes -> 'list' ->> -1 AS h, notes -> 'no' AS i, (notes -> 'deep') IS NULL AS j FROM matches;

--- asking documents
SELECT id, notes @> '{"n": 3}' AS a, '{"n": 3}' <@ notes AS b, notes ? 'n' AS c, notes ?| ARRAY['x', 'deep'] AS d, notes ?& ARRAY['n', 'deep'] AS e,
    notes @? '$.list[*] ? (@ > 6)' AS f, notes @@ '$.n < 4' AS g, jsonb_typeof(notes -> 'list') AS h FROM matches WHERE id < 12;

--- paths through documents
SELECT jsonb_path_query_array('[1, 2, 3, {"a": "x"}]', '$[*] ? (@ > $least)', '{"least": 1}') AS a, jsonb_path_query_first('{"a": [1, 2]}', 'strict $.a[last]') AS b,
    jsonb_path_exists('{"a": 1}', '$.a ? (@ like_regex "^1")') AS c,
    jsonb_path_query_array('{"t": ["2026-01-01", "2026-06-01"]}', '$.t[*].datetime() ? (@ < "2026-03-01".datetime())') AS d, jsonb_path_query_array('[[1, 2], [3]]',
    '$[*].size()') AS e, jsonb_path_query_array('{"a": {"b": {"a": 7}}}', '$.**.a') AS f,
    jsonb_path_match('{"n": 5}', 'exists($.n ? (@ >= 2 && @ <= 6))') AS g, '$.a[*].b ? (@.c == 1)'::jsonpath AS h, 1 AS id;

--- documents that are changed
SELECT jsonb_set('{"a": {"b": 1}}', '{a,b}', '[2, 3]') AS a, jsonb_insert('{"a": [0, 1]}', '{a,1}', '"new"') AS b, '{"a": 1, "b": 2}'::jsonb - 'a' AS c,
    '[1, 2, 3]'::jsonb - 1 AS d, '{"a": {"b": 1, "c": 2}}'::jsonb #- '{a,b}' AS e,
    '{"a": 1}'::jsonb || '{"a": 2, "b": null}' AS f, jsonb_strip_nulls('{"a": null, "b": {"c": null}}') AS g, jsonb_pretty('{"a": [1, 2]}') AS h,
    jsonb_set_lax('{"a": 1}', '{a}', NULL, true, 'delete_key') AS i, '["a", "b"]'::jsonb - ARRAY['a'] AS j, 1 AS id;

--- documents that are made
SELECT json_build_object('a', 1, 'b', ARRAY[1.10, NULL], 'c', date '2026-01-01') AS a, jsonb_build_array(1, 'x', NULL, 0.1::real, timestamptz '2026-01-01 00:00+00') AS b,
    row_to_json(s) AS c, to_jsonb(s) AS d, array_to_json(ARRAY[[1, 2], [3, 4]]) AS e, json_object('{a,1,b,2}') AS f,
    jsonb_object(ARRAY['k'], ARRAY['v']) AS g, to_json('x'::text) AS h, to_json('NaN'::float8) AS i, to_json(interval '1 day') AS j, 1 AS id FROM staff AS s WHERE id = 2;

--- rows that become documents
SELECT boss, count(*) AS n, json_agg(name ORDER BY id DESC) AS a, jsonb_object_agg(name, pay) AS b, json_agg(row(id, name) ORDER BY id) AS c,
    jsonb_agg(DISTINCT pay) AS d, json_object_agg(name, boss ORDER BY name) AS e FROM staff GROUP BY boss;

--- documents that become rows
SELECT r.*, e.key, e.value FROM json_to_recordset('[{"a": 1, "b": "x"}, {"a": 2.9e0, "b": null, "c": [1, 2]}]') AS r (a numeric, b text, c int[]),
    jsonb_each('{"k": 1, "l": {"m": null}}') AS e;

--- elements of documents
SELECT a.o AS id, a.v, t.t, k.k, (jsonb_populate_record(NULL::place, '{"city": "Rome", "zip": 7}')).city AS city
    FROM jsonb_array_elements('[1, "x", null]') WITH ORDINALITY AS a (v, o), jsonb_array_elements_text('["y", null]') AS t (t),
    json_object_keys('{"p": 1, "q": 2}') AS k (k);

--- arrays, reached into and cut
SELECT (ARRAY['a', 'b', 'c'])[2] AS a, (ARRAY['a', 'b', 'c'])[2:] AS b, (ARRAY[1, 2, 3])[ : 2] AS c, (ARRAY[[1, 2], [3, 4]])[2][1] AS d, (ARRAY[[1, 2],
    [3, 4]])[1:2][2:2] AS e, (ARRAY[1])[9] AS f, array_length(ARRAY[[1, 2, 3]], 2) AS g, cardinality(ARRAY[[1, 2], [3, 4]]) AS h,
    array_dims(ARRAY[[1, 2]]) AS i, array_upper('[0:2]={1,2,3}'::int[], 1) AS j, array_ndims(ARRAY[[1]]) AS k;

--- arrays, made and compared
SELECT ARRAY[1, 2] || 3 AS a, 0 || ARRAY[1] AS b, ARRAY[1] || ARRAY[2, 3] AS c, array_append(ARRAY[1], NULL) AS d, array_remove(ARRAY[1, 2, 1], 1) AS e,
    array_replace(ARRAY[1, 2], 2, 5) AS f, array_position(ARRAY['a', 'b'], 'b') AS g, array_positions(ARRAY[1, 2, 1], 1) AS h,
    ARRAY[1, 2, 3] @> ARRAY[2] AS i, ARRAY[1] <@ ARRAY[1, 2] AS j, ARRAY[1, 2] && ARRAY[2, 3] AS k, ARRAY[1, 2] < ARRAY[1, 3] AS l, string_to_array('a,,b', ',', '') AS m,
    array_to_string(ARRAY[1, NULL, 3], ',', '*') AS n, array_fill(7, ARRAY[2, 2]) AS o, trim_array(ARRAY[1, 2, 3], 2) AS p,
    ARRAY(SELECT id FROM staff ORDER BY id DESC LIMIT 3) AS q, 1 = ANY (ARRAY[1, 2]) AS r, 3 > ALL ('{1,2}'::int[]) AS s, array_cat(ARRAY['x'], '{}') AS t;

--- each element of arrays side by side
SELECT u.o AS id, u.a, u.b, s.s FROM unnest(ARRAY[1, 2], ARRAY['x', 'y', 'z']) WITH ORDINALITY AS u (a, b, o), generate_subscripts(ARRAY[7, 8], 1) AS s (s);

--- arguments by name, in a list, and left out
SELECT concat_ws(',', VARIADIC ARRAY['a', 'b']) AS a, make_interval(days => 1, hours := 2) AS b, num_nulls(VARIADIC ARRAY[2, NULL]) AS c WHERE true
UNION ALL SELECT concat(VARIADIC ARRAY['x', NULL, 'y']), make_interval(mins => 90), num_nonnulls(VARIADIC ARRAY[1, NULL]);

--- numbers, rounded and cut
SELECT round(2.5) AS a, round(-2.5) AS b, round(2.5::float8) AS c, round(1234.567, 2) AS d, round(1234.567, -2) AS e, trunc(-1.999, 1) AS f, ceil(-0.5) AS g,
    floor(-0.5::float8) AS h, sign(-3) AS i, abs(-7.10) AS j, mod(11, -4) AS k, gcd(12, 18) AS l, lcm(4, 6) AS m, width_bucket(5.35, 0.024, 10.06, 5) AS n,
    scale(8.4100) AS o, trim_scale(8.4100) AS p, min_scale(8.4100) AS q, cbrt(27.0) AS r, power(9, 3) AS s, power(2.0, 0.5) AS t, factorial(20) AS u;

--- functions of angles, to the last digit
SELECT n AS id, sin(n) AS a, cos(n) AS b, tan(n) AS c, asin(n / 10.0) AS d, atan2(n, 2) AS e, sinh(n) AS f, degrees(n) AS g, radians(n * 10.0) AS h, pi() * n AS i,
    exp(n::float8) AS j, ln(n::float8) AS k, log(2.0, n) AS l, sind(n * 30) AS m, sqrt(n::float8) AS n, log10(n::float8) AS o FROM generate_series(1, 9) AS n;

--- choosing among values
SELECT n AS id, CASE n WHEN 1 THEN 'one' WHEN 2 THEN NULL ELSE 'more' END AS a, CASE WHEN n > 1 THEN 1.5 ELSE n END AS b, coalesce(NULL, nullif(n, 2), -1) AS c,
    greatest(n, 2, NULL) AS d, least(1.10, n) AS e, n IS DISTINCT FROM 2 AS f, n IS NOT DISTINCT FROM NULL AS g, n BETWEEN SYMMETRIC 3 AND 2 AS h,
    n NOT BETWEEN 2 AND 3 AS i, n IN (1, 3) AS j, n NOT IN (SELECT 2) AS k, (n > 2) IS NOT UNKNOWN AS l, n ISNULL AS m, n NOTNULL AS n
FROM generate_series(1, 4) AS n;

--- looking for words
SELECT id, title, words @@ to_tsquery('english', 'dog & !lazy') AS a, words @@ websearch_to_tsquery('english', '"quick brown" or rain -cat') AS b,
    words @@ plainto_tsquery('english', 'cats running') AS c, words @@ phraseto_tsquery('english', 'rain and rain') AS d, words @@ ('cat' || ':*')::tsquery AS e,
    ts_rank(words, 'cat'::tsquery)::numeric(8, 6) AS f, ts_rank_cd(words, 'dog'::tsquery) AS g FROM documents;

--- words and what is asked of them, as texts
SELECT id, words AS a, to_tsvector('simple', body) AS b, ts_headline('english', body, to_tsquery('english', 'dog | cat'), 'StartSel=<, StopSel=>') AS c,
    strip(words) AS d, numnode(to_tsquery('english', 'a & (b | c)')) AS e, 'fat:B & (rat | cat:*)'::tsquery AS f, ts_rewrite('a & b'::tsquery, 'a'::tsquery,
    'c'::tsquery) AS g, length(words) AS h, tsvector_to_array(words) AS i FROM documents;

--- what the server says of itself
SELECT current_database() = current_catalog AS a, current_schema AS b, session_user = current_user AS c, current_setting('TimeZone') AS d,
    current_setting('transaction_read_only') AS e, current_setting('no.such', true) AS f, to_regclass('matches') IS NOT NULL AS g, now() = transaction_timestamp() AS h,
    CURRENT_DATE = now()::date AS i, pg_typeof(now()) AS j,
    has_table_privilege('matches', 'SELECT') AS k, obj_description('matches'::regclass) AS l, col_description('matches'::regclass, 1) AS m;

--- locks for as long as a statement runs, and for longer
SELECT 1 AS id, pg_try_advisory_xact_lock(1) AS a, pg_try_advisory_lock_shared(2) AS b, pg_try_advisory_xact_lock_shared(3) AS c;

--- functions of the seller's own
SELECT m.id, doubled(m.goals) AS twice, t.goals FROM of_team('Ajax') AS m JOIN LATERAL of_team(wanted => 'Ajax') AS t USING (id);

--- sizes, hashes and chances that are fixed
SELECT pg_column_size(1) AS a, hashtext('x') AS b, pg_size_pretty(123456789::bigint) AS c, pg_size_bytes('1 GB') AS d, crc.n AS e, length(gen_random_uuid()::text) AS f,
    random() < 1 AS g, md5(string_agg(id::text, ',' ORDER BY id)) AS h FROM staff, (SELECT 7 AS n) AS crc GROUP BY crc.n;
