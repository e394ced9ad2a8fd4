-- What is computed. breadth.rs says how this is read.

--- arithmetic
SELECT 7 / 2 AS a, -7 DIV 2 AS b, 7 % -3 AS c, 7.5 MOD 2 AS d, 1 + '3' AS e, 1.10 * 1.1 AS f, 1 - 1.0 AS g, 2 * 3e0 AS h, -(-5) AS i, 10 / 4 AS j, 0.1 + 0.2 AS k, 1 / 3 AS l,
    1 / 3.000000 AS m, '1.5' * 2 AS n, 5 & 3 AS o, 5 | 3 AS p, 5 ^ 3 AS q, ~1 AS r, 1 << 40 AS s, 18446744073709551615 >> 1 AS t, 9223372036854775807 + 0e0 AS u, 1--1 AS v;

--- unsigned numbers among others
SELECT id, u + 1 AS a, ubig DIV 2 AS b, ubig * 1.0 AS c, CAST(u AS SIGNED) - 5 AS d, ubig + 0e0 AS e, ubig = 18446744073709551615 AS f, GREATEST(ubig, big) AS g FROM numbers
    WHERE id IN (2, 4, 5);

--- comparisons
SELECT 1 = 1.0 AS a, 'a' = 'A' AS b, 'a' = 'a ' AS c, BINARY 'a' = 'A' AS d, 'é' = 'e' AS e, NULL = NULL AS f, NULL <=> NULL AS g, 1 <> 2 AS h, 1 != 1 AS i, 2 BETWEEN 1 AND 3 AS j,
    'b' IN ('a', 'B') AS k, 1 NOT IN (2, NULL) AS l, (1, 2) = (1, 2) AS m, (1, NULL) <=> (1, NULL) AS n, 'abc' LIKE 'A_c' AS o, '10%' LIKE '10!%' ESCAPE '!' AS p,
    'a' LIKE BINARY 'A' AS q, '2026-02-28' < DATE '2026-03-01' AS r, 1 XOR 1 AS s, NOT NULL AS t, 1 && 0 AS u, 1 OR NULL AS v, 'x' SOUNDS LIKE 'ks' AS w;

--- choices
-- mariadb: MySQL has no NVL2
SELECT id, IF(goals > 2, 'many', 'few') AS a, IFNULL(goals, -1) AS b, NULLIF(goals, 2) AS c, COALESCE(rival, team, 'x') AS d, CASE side WHEN 'home' THEN 1 WHEN 'away' THEN 2.5 END AS e,
    CASE WHEN goals IS NULL THEN 'none' WHEN goals > 3 THEN team END AS f, GREATEST(goals, 2, 1.5) AS g, LEAST(team, 'Bz') AS h, INTERVAL(goals, 1, 3, 5) AS i,
    ELT(goals, 'a', 'b') AS j, FIELD(team, 'Ajax', 'Celtic') AS k, NVL2(rival, 1, 0) AS l, DECODE_ORACLE(side, 'home', 'H', 'other') AS m FROM matches;

--- roundings
SELECT ROUND(2.5) AS a, ROUND(-2.5) AS b, ROUND(2.5e0) AS c, ROUND(1234.567, 2) AS d, ROUND(1234.567, -2) AS e, TRUNCATE(-1.999, 1) AS f, CEIL(1.1) AS g, FLOOR(-1.1) AS h,
    CEILING(1.5e15) AS i, FORMAT(1234567.891, 2) AS j, ROUND(1.005, 2) AS k, ROUND(1.005e0, 2) AS l, ABS(-1.50) AS m, SIGN(-3) AS n, ROUND(99999999999999999999.5) AS o,
    FORMAT(1234567.891, 1, 'de_DE') AS p, CONV('ff', 16, 10) AS q, OCT(9) AS r, CRC32('x') AS s, ROUND(5, 3) AS t;

--- mathematics
SELECT seq AS id, SIN(seq) AS a, COS(seq) AS b, TAN(seq) AS c, ATAN(seq) AS d, ATAN2(seq, 3) AS e, COT(seq) AS f, LOG2(seq) AS g, LOG10(seq) AS h, LOG(2, seq) AS i, RADIANS(seq) AS j,
    DEGREES(seq) AS k, ASIN(seq / 10) AS l, ACOS(seq / 10) AS m, POWER(seq, 0.5) AS n, EXP(-seq) AS o FROM seq_1_to_9;

--- texts
-- mariadb: MySQL has no CHR
SELECT CONCAT('a', 1, 2.50, TRUE) AS a, CONCAT_WS(',', 'a', NULL, '', 'b') AS b, SUBSTRING('größe', 3) AS c, SUBSTR('größe', -2, 1) AS d, LEFT('größe', 3) AS e, RIGHT('漢字🦀', 2) AS f,
    UPPER('größe') AS g, LOWER('ÄÉ') AS h, TRIM('  a ') AS i, TRIM(LEADING 'x' FROM 'xxax') AS j, LPAD('é', 3, 'ab') AS k, RPAD('é', 4, '-') AS l, REPLACE('aXbX', 'X', 'yy') AS m,
    REVERSE('größe') AS n, REPEAT('ab', 3) AS o, LOCATE('ö', 'größe') AS p, INSTR('größe', 'ß') AS q, INSERT('größe', 2, 2, 'XYZ') AS r, SUBSTRING_INDEX('a.b.c', '.', -2) AS s,
    SPACE(3) AS t, STRCMP('a', 'b') AS u, CHAR_LENGTH('🦀') AS v, LENGTH('🦀') AS w, BIT_LENGTH('é') AS x, ASCII('é') AS y, ORD('é') AS z, QUOTE('it''s') AS aa, HEX('é') AS ab,
    UNHEX('c3a9') AS ac, TO_BASE64('größe') AS ad, FROM_BASE64('Z3I=') AS ae, SOUNDEX('Robert') AS af, CHAR(65) AS ag, ASCII('') AS ah, MID('abc', 2, 1) AS ai, CHR(233) AS aj;

--- regular expressions
SELECT 'größe' REGEXP '^gr.*e$' AS a, 'abc' RLIKE 'B' AS b, 'abc' NOT REGEXP 'd' AS c, REGEXP_REPLACE('a1b22', '[0-9]+', '#') AS d, REGEXP_SUBSTR('a1b22', '[0-9]{2}') AS e,
    REGEXP_INSTR('größe', 'ß') AS f, REGEXP_REPLACE('John Smith', '(\\w+) (\\w+)', '\\2, \\1') AS g, 'a\nb' REGEXP '(?s)a.b' AS h, REGEXP_SUBSTR('x', 'y') AS i;

--- bytes that are made
SELECT MD5('x') AS a, SHA1('x') AS b, SHA2('x', 256) AS c, UNHEX('00ff') AS d, AES_ENCRYPT('text', 'key') AS e, CAST(AES_DECRYPT(AES_ENCRYPT('text', 'key'), 'key') AS CHAR) AS f,
    COMPRESS('') AS g, UNCOMPRESS(COMPRESS('größe')) AS h, CONCAT(x'00', CAST('é' AS BINARY)) AS i, CONVERT('é', BINARY) AS j, INET_ATON('10.0.0.1') AS k, INET_NTOA(167772161) AS l,
    INET6_ATON('::1') AS m, INET6_NTOA(INET6_ATON('2001:db8::1')) AS n, WEIGHT_STRING('a') AS o, BIT_COUNT(7) AS p, CHARSET('a') AS q, COLLATION(x'00') AS r, COERCIBILITY('a') AS s;

--- collations
SELECT v COLLATE utf8mb4_bin = 'É' AS a, v COLLATE utf8mb4_unicode_ci = 'e' AS b, latin COLLATE latin1_german2_ci = 'groesse' AS c, id FROM texts;

--- parts of times
SELECT id, YEAR(played) AS a, QUARTER(played) AS b, MONTH(played) AS c, WEEK(played, 3) AS d, DAYOFWEEK(played) AS e, WEEKDAY(day) AS f, DAYOFYEAR(day) AS g, HOUR(kick_off) AS h,
    MINUTE(played) AS i, SECOND(shown) AS j, MICROSECOND(played) AS k, EXTRACT(YEAR_MONTH FROM day) AS l, EXTRACT(DAY_MICROSECOND FROM played) AS m, YEARWEEK(day, 1) AS n,
    DAYNAME(day) AS o, MONTHNAME(day) AS p, LAST_DAY(day) AS q, TO_DAYS(day) AS r, TO_SECONDS(shown) AS s, DATE(played) AS t, TIME(played) AS u FROM matches;

--- times that are added and taken away
-- mariadb: MySQL has no ADD_MONTHS
SELECT id, day + INTERVAL 1 MONTH AS a, shown - INTERVAL '1 2:03:04' DAY_SECOND AS b, played + INTERVAL 0.5 SECOND AS c, DATE_ADD(day, INTERVAL 90 MINUTE) AS d,
    DATE_SUB(shown, INTERVAL 1 QUARTER) AS e, ADDDATE(day, 7) AS f, DATEDIFF(day, '2026-01-01') AS g, TIMESTAMPDIFF(HOUR, shown, played) AS h, TIMESTAMPADD(WEEK, 2, day) AS i,
    TIMEDIFF(shown, '2026-02-25 20:15:30') AS j, ADDTIME(kick_off, '13:00:00.25') AS k, SUBTIME(played, '00:00:00.000001') AS l, PERIOD_ADD(202611, 3) AS m,
    PERIOD_DIFF(202703, 202611) AS n, INTERVAL 1 DAY + day AS o, ADD_MONTHS(day, 2) AS p FROM matches WHERE id < 12;

--- times that are told and read
-- mariadb: MySQL has no TO_CHAR
SELECT id, DATE_FORMAT(played, '%Y-%m-%dT%H:%i:%s.%fZ') AS a, DATE_FORMAT(day, '%W %D %M %y %j %U %a') AS b, TIME_FORMAT(kick_off, '%h:%i %p') AS c,
    STR_TO_DATE('28.02.2026 7:05', '%d.%m.%Y %k:%i') AS d, STR_TO_DATE('07:05:09.5', '%H:%i:%s.%f') AS e, FROM_UNIXTIME(1772000000) AS f, FROM_UNIXTIME(1772000000.5, '%Y %f') AS g,
    MAKEDATE(2026, 366) AS h, CONVERT_TZ(shown, '+00:00', '+05:30') AS i, FROM_DAYS(740000) AS j, TO_CHAR(shown, 'YYYY/MM/DD') AS k, UNIX_TIMESTAMP(shown) AS l,
    SEC_TO_TIME(id * 1234.5) AS m, GET_FORMAT(DATE, 'EUR') AS n FROM matches WHERE id < 5;

--- now is in UTC and stands still in a statement
SELECT NOW(6) = SYSDATE(6) OR NOW(6) <= SYSDATE(6) AS a, TIMESTAMPDIFF(MINUTE, UTC_TIMESTAMP(), NOW()) AS b, @@session.time_zone AS c, CURRENT_DATE = UTC_DATE AS d;

--- documents that are read
-- mariadb: MySQL has no JSON_QUERY
SELECT id, JSON_VALUE(notes, '$.n') AS a, JSON_EXTRACT(notes, '$.list[1]') AS b, JSON_UNQUOTE(JSON_EXTRACT(notes, '$.deep.er')) AS c, JSON_QUERY(notes, '$.deep') AS d,
    JSON_CONTAINS(notes, '1', '$.list') AS e, JSON_EXISTS(notes, '$.deep') AS f, JSON_KEYS(notes) AS g, JSON_SEARCH(notes, 'one', 'x4') AS h, JSON_DEPTH(notes) AS i,
    JSON_CONTAINS_PATH(notes, 'all', '$.n', '$.nothing') AS j FROM matches;

--- documents that are made
-- mariadb: MySQL has no JSON_DETAILED
SELECT JSON_OBJECT('a', 1, 'b', NULL, 'c', TRUE, 'd', 1.50, 'e', 'größe "x"', 'f', DATE '2026-02-28') AS a, JSON_ARRAY(1, 'x', NULL, 2e0) AS b, JSON_MERGE_PATCH('{"a": 1}', '{"b": 2}') AS c,
    JSON_SET('{"a": 1}', '$.b', 'x') AS d, JSON_INSERT('[1]', '$[1]', 2) AS e, JSON_REMOVE('{"a": 1, "b": 2}', '$.a') AS f, JSON_REPLACE('{"a": 1}', '$.a', 9007199254740993) AS g,
    JSON_QUOTE('a"b') AS h, JSON_ARRAY_APPEND('[1]', '$', 2) AS i, JSON_DETAILED('{"a":[1,2]}') AS j, JSON_NORMALIZE('{"b": 1.0, "a": 2}') AS k, JSON_EQUALS('{"a": 1}', '{"a":1}') AS l;

--- documents that are gathered
-- mariadb: MySQL has no order in JSON_ARRAYAGG
SELECT side, JSON_ARRAYAGG(id ORDER BY id) AS a, JSON_OBJECTAGG(id, team) AS b FROM matches WHERE id < 10 GROUP BY side;

--- a document becomes rows
SELECT * FROM JSON_TABLE('[{"id": 1, "price": "9.99", "tags": ["a", "b"], "deep": {"x": [1]}}, {"id": 2, "tags": []}, {"id": "x"}]', '$[*]' COLUMNS (
    n FOR ORDINALITY, id INT PATH '$.id', price DECIMAL(8,3) PATH '$.price' DEFAULT '0' ON EMPTY, has_deep INT EXISTS PATH '$.deep', deep JSON PATH '$.deep',
    NESTED PATH '$.tags[*]' COLUMNS (tag VARCHAR(9) PATH '$'))) AS t;

--- a document of each row becomes rows
SELECT m.id, t.place, t.v FROM matches AS m, JSON_TABLE(m.notes, '$.list[*]' COLUMNS (place FOR ORDINALITY, v BIGINT PATH '$')) AS t WHERE m.id < 20;

--- what the server says of itself
-- mariadb: MySQL has no tx_read_only
SELECT CHARSET(CONCAT(team, '')) AS a, @@character_set_results AS b, @@session.tx_read_only IN (0, 1) AS c, DATABASE() LIKE 'test%' OR DATABASE() = 'b' AS d, FOUND_ROWS() >= 0 AS e,
    @@version LIKE '%MariaDB%' AS f, LAST_INSERT_ID() AS g, CONNECTION_ID() > 0 AS h FROM matches WHERE id = 1;

--- functions of the seller's own
SELECT id, doubled(id) AS twice, counted() AS n FROM staff;

--- words in texts
SELECT id, MATCH (body) AGAINST ('dog* -lazy' IN BOOLEAN MODE) > 0 AS found, MATCH (body) AGAINST ('rain') > 0 AS rains FROM words;

--- shapes
SELECT ST_AsText(ST_GeomFromText('POLYGON((0 0,4 0,4 3,0 0))')) AS a, ST_Area(ST_GeomFromText('POLYGON((0 0,4 0,4 3,0 0))')) AS b, ST_Distance(POINT(0, 0), POINT(3, 4)) AS c,
    ST_Contains(ST_GeomFromText('POLYGON((0 0,4 0,4 4,0 4,0 0))'), POINT(1, 1)) AS d, ST_AsGeoJSON(LINESTRING(POINT(0, 0), POINT(1.5, 2))) AS e, POINT(1, 2) AS f;

--- a lock, which is given up behind the statement
SELECT GET_LOCK('souk', 10) AS a;

--- what takes no time
-- mariadb: MySQL has no SFORMAT
SELECT SLEEP(0) AS a, BENCHMARK(10, MD5('x')) AS b, UUID() LIKE '%-%' AS c, RAND(42) AS d, NAME_CONST('x', 1) AS e, SFORMAT('{} of {:.2f}', 'x', 1.5) AS f, NATURAL_SORT_KEY('a10') AS g;
