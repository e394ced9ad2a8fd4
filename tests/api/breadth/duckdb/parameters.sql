-- Statements with parameters: assets, of which each answers one value. breadth.rs says how this is read.

--- an optional filter, given
-- :team string "Ajax"
-- :least integer 3
SELECT count(*) FROM matches WHERE (:team IS NULL OR team = :team) AND (:least IS NULL OR goals >= :least);

--- an optional filter, left out
-- :team string null
-- :least integer null
SELECT count(*) FROM matches WHERE (:team IS NULL OR team = :team) AND (:least IS NULL OR goals >= :least);

--- optional filters of the other types, left out
-- :fee number null
-- :day date null
-- :at timestamp null
-- :final boolean null
SELECT count(*) FROM matches WHERE (:fee IS NULL OR fee < :fee) AND (:day IS NULL OR day = :day) AND (:at IS NULL OR played < :at) AND (:final IS NULL OR is_final = :final);

--- optional filters of the other types, given
-- :fee number 60000.5
-- :day date "2026-03-02"
-- :at timestamp "2026-05-01T00:00:00Z"
-- :final boolean false
SELECT count(*) FROM matches WHERE (:fee IS NULL OR fee < :fee) AND (:day IS NULL OR day >= :day) AND (:at IS NULL OR played < :at) AND (:final IS NULL OR is_final = :final);

--- half of an optional filter
-- :side string "home"
-- :team string null
SELECT sum(fee) FROM matches WHERE (:side IS NULL OR side = :side) AND team = coalesce(:team, team);

--- a sum of parameters alone
-- :i integer 2
-- :j integer 40
SELECT :i + :j;

--- a sum that is larger than 32 bits
-- :i integer 2147483647
-- :j integer 2
SELECT :i * :j + :i;

--- whole numbers at their ends
-- :least integer -9223372036854775808
-- :most integer 9223372036854775807
SELECT sum(views) FROM matches WHERE views BETWEEN :least AND :most;

--- a whole number at its end by itself
-- :n integer -9223372036854775808
SELECT :n;

--- a number with a fraction beside whole numbers
-- :n number 2.5
SELECT sum(id) / :n FROM matches;

--- a whole number that is declared to be any number
-- :n number 4
SELECT max(id) / :n FROM staff;

--- whole numbers divided by a whole number
-- :n integer 4
SELECT sum(id) // :n FROM staff;

--- exact numbers compared
-- :fee number 12345.678
SELECT count(*) FROM matches WHERE fee > :fee;

--- a number that is very small
-- :n number 1e-300
SELECT :n * 1e300::DOUBLE;

--- a number that is very large
-- :n number 1.7976931348623157e308
SELECT :n / 10;

--- floats compared
-- :weight number 3.3333333333333335
SELECT string_agg(id, ',' ORDER BY id) FROM matches WHERE weight = :weight;

--- a page of an order, as one text
-- :n integer 5
-- :from integer 10
SELECT string_agg(id, ',') FROM (SELECT id FROM matches ORDER BY team, id LIMIT :n OFFSET :from) AS s;

--- one of a list that is written in a text
-- :list string "1,2,5"
SELECT sum(pay) FROM staff WHERE list_contains(string_split(:list, ',')::INTEGER[], id);

--- one of some
-- :a integer 1
-- :b integer 7
SELECT string_agg(name, ',' ORDER BY name) FROM staff WHERE id IN (:a, :b, 3) AND id NOT IN (:b);

--- between two days
-- :from date "2026-03-01"
-- :to date "2026-03-15"
SELECT count(*) FROM matches WHERE day BETWEEN :from AND :to;

--- a day at the beginning of time
-- :day date "0001-01-01"
SELECT :day;

--- a day at the end of time
-- :day date "9999-12-31"
SELECT :day;

--- since a moment
-- :since timestamp "2026-03-10T12:00:00.000001Z"
SELECT min(played) FROM matches WHERE played >= :since;

--- a moment beside a clock without a zone
-- :since timestamp "2026-03-10T12:00:00Z"
SELECT min(shown) FROM matches WHERE shown >= :since;

--- a moment of a caller's zone
-- :since timestamp "2026-03-10T12:00:00+02:00"
SELECT count(*) FROM matches WHERE played >= :since;

--- days before a moment
-- :until timestamp "2026-03-10T12:00:00Z"
SELECT count(*) FROM matches WHERE played >= :until - INTERVAL '7 days' AND played < :until;

--- a month of a day
-- :day date "2026-03-31"
SELECT last_day(:day);

--- fields of a day
-- :day date "2026-03-31"
SELECT extract(isodow FROM :day) * 100 + extract(week FROM :day);

--- a moment told in a zone
-- :at timestamp "2026-07-01T22:30:00Z"
-- :zone string "Europe/Berlin"
SELECT strftime(:at AT TIME ZONE :zone, '%Y-%m-%d %H:%M');

--- a moment in a text
-- :at timestamp "2026-03-31T12:00:00.5Z"
SELECT 'at ' || :at;

--- a day and a moment in a text by their pattern
-- :at timestamp "2026-03-31T23:30:00Z"
SELECT strftime(:at, '%Y-%m-%d %H:%M:%S');

--- the day of a moment
-- :at timestamp "2026-03-31T23:30:00Z"
SELECT CAST(:at AS DATE);

--- a span of time that is written in a text
-- :span string "36 hours"
SELECT count(*) FROM matches WHERE played < TIMESTAMPTZ '2026-03-01 00:00:00+00' + :span::INTERVAL;

--- as many days as a number says
-- :days integer 10
SELECT (max(day) - to_days(:days))::DATE FROM matches;

--- as many days as a number says, as a span of time
-- :days integer 10
SELECT min(played) + INTERVAL (:days) DAY FROM matches;

--- a day and a number of days, which is told to be small
-- :day date "2026-03-31"
-- :days integer 7
SELECT :day + :days::INTEGER;

--- a day and a number of days of the seller's
-- :day date "2026-03-31"
SELECT :day + 7;

--- a day and a span of time
-- :day date "2026-03-31"
SELECT count(*) FROM matches WHERE played >= :day - INTERVAL '7 days';

--- days between two days
-- :a date "2026-03-31"
-- :b date "2024-02-29"
SELECT :a - :b;

--- the later one of two days
-- :a date "2026-03-31"
-- :b date "2026-04-01"
SELECT greatest(:a, :b);

--- a list as long as a number says
-- :n integer 12
SELECT string_agg(strftime(d, '%m-%d'), ' ' ORDER BY d) FROM generate_series(DATE '2026-01-01', DATE '2026-01-01' + to_days(:n - 1), INTERVAL '1 day') AS g (d);

--- a series as long as a number says
-- :n integer 1000
SELECT sum(n) FROM range(:n) AS r (n);

--- a slice as long as a number says
-- :n integer 2
SELECT array_to_string(['a', 'b', 'c'][1 : :n], '+');

--- an element by its place
-- :n integer 2
SELECT ['a', 'b', 'c'][:n];

--- a text with all that is special
-- :t string "it's \"q\" \\ % _ : $1 ?\n\té漢🦀 -- /* ;"
SELECT :t || '|' || length(:t);

--- a text with blanks that DuckDB changes elsewhere
-- :t string "a\u00a0b\u200bc\ufeffd\u3000e"
SELECT :t || '|' || length(:t) || '|' || strlen(:t) -- it's a comment with an apostrophe
;

--- a text that looks like the name of a value
-- :t string "$souks_value_0 ' || ''"
SELECT :t;

--- an empty text
-- :t string ""
SELECT coalesce(nullif(:t, ''), 'nothing') || count(*) FROM texts WHERE v = :t;

--- what a text contains
-- :q string "EL"
SELECT string_agg(DISTINCT team, ',' ORDER BY team) FROM matches WHERE team ILIKE '%' || :q || '%';

--- a pattern
-- :p string "^[AB]"
SELECT count(*) FROM matches WHERE regexp_matches(team, :p) AND NOT regexp_matches(rival, :p, 'i');

--- a pattern of LIKE
-- :p string "%a_"
SELECT count(*) FROM matches WHERE team LIKE :p;

--- an enumeration by its word
-- :side string "away"
SELECT count(*) FROM matches WHERE side = :side;

--- an enumeration by a word that it does not have
-- :side string "nowhere"
SELECT count(*) FROM matches WHERE side::VARCHAR = :side;

--- a key
-- :key string "c4ca4238-a0b9-2382-0dcc-509a6f75849b"
SELECT id FROM matches WHERE key = :key;

--- a day in a text beside a column of days
-- :day string "2026-03-01"
SELECT id FROM matches WHERE day = :day;

--- a number in a text beside a column of numbers
-- :n string "7"
SELECT name FROM staff WHERE id = :n::INTEGER;

--- yes or no
-- :final boolean true
SELECT count(*) FROM matches WHERE is_final = :final;

--- yes or no by itself
-- :on boolean false
-- :off boolean null
SELECT count(*) FROM staff WHERE NOT :on OR :off;

--- yes or no in a text
-- :on boolean true
SELECT 'on: ' || :on;

--- a member of documents by its name
-- :key string "n"
SELECT sum((notes ->> :key)::INTEGER) FROM matches WHERE json_exists(notes, :key);

--- an element of a document by its place
-- :place integer 1
SELECT ('["a", "b", "c"]'::JSON) ->> :place;

--- a percentile of the caller's
-- :p number 0.9
SELECT quantile_cont(weight, :p) FROM matches;

--- a frame as wide as a number says
-- :n integer 2
SELECT max(s) FROM (SELECT sum(id) OVER (ORDER BY id ROWS :n PRECEDING) AS s FROM matches) AS t;

--- a parameter in many places
-- :n integer 3
WITH RECURSIVE steps (i) AS (SELECT :n UNION ALL SELECT i + :n FROM steps WHERE i < :n * 10) SELECT string_agg(i, ',' ORDER BY i) || '/' || :n FROM steps;

--- a parameter in a lambda
-- :n integer 3
SELECT list_sum(list_transform([1, 2, 3], lambda x: x * :n));

--- a parameter in a comprehension
-- :n integer 2
SELECT array_to_string([x * :n FOR x IN [1, 2, 3] IF x > :n], ',');

--- a parameter in a struct and in a map
-- :n integer 2
-- :k string "b"
SELECT ({'a': :n}).a + MAP {'a': 1, 'b': 40}[:k];

--- a parameter where groups are chosen
-- :n integer 12
SELECT string_agg(team, ',' ORDER BY team) FROM (SELECT team FROM matches GROUP BY team HAVING count(*) >= :n) AS s;

--- a parameter where rows qualify
-- :n integer 1
SELECT sum(id) FROM (SELECT id FROM matches QUALIFY row_number() OVER (PARTITION BY team ORDER BY id) <= :n) AS s;

--- a parameter in a macro of the seller's
-- :n integer 21
SELECT doubled(:n);

--- a parameter beside the price that was at the time
-- :at timestamp "2026-01-10T12:00:00Z"
SELECT price FROM (SELECT :at::TIMESTAMP AS placed, 'tea' AS item) AS o ASOF JOIN prices AS p ON o.item = p.item AND o.placed >= p.since;

--- what looks like a parameter
-- :a string "v"
SELECT ':b' || :a || (['x'])[1 : 1][1] || '12:30'::TIME || (SELECT ":e" FROM (SELECT 'n' AS ":e") AS s) /* :f */;

--- a number rounded as the caller wants
-- :places integer 3
SELECT round(avg(fee), :places::INTEGER) FROM matches;

--- a number in a function of every type
-- :n integer 7
SELECT concat('n', :n) || format('{:03d}', :n) || printf('%d', :n);

--- the greater of two numbers
-- :a integer 9
-- :b integer 10
SELECT greatest(:a, :b);

--- one of two numbers
-- :yes boolean true
-- :a number 1.5
-- :b number 2.5
SELECT CASE WHEN :yes THEN :a ELSE :b END;

--- a number by itself
-- :n number 0.1
SELECT :n;

--- a number that is left out
-- :n number null
SELECT coalesce(:n, -1);

--- a number that is left out, by itself
-- :n integer null
SELECT :n;

--- a NULL beside exact numbers keeps their digits
-- :n number null
SELECT coalesce(:n::DECIMAL(38, 20), 1.00000000000000000001);

--- a number in a text
-- :n number 4
SELECT :n || ' goals';

--- a part of a text from a place on
-- :from integer 3
SELECT substring('abcdef', :from);

--- a column of a type of the caller's word, tried
-- :t string "many"
SELECT coalesce(try_cast(:t AS INTEGER), -1);

--- a text beside a number that it is not, tried
-- :t string "1e3"
SELECT :t::DOUBLE;

--- an overflow that becomes a wider number
-- :n integer 9223372036854775807
SELECT sum(n) FROM (SELECT :n AS n UNION ALL SELECT :n) AS s;
