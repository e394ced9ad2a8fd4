-- Statements with parameters: assets, of which each answers one value. breadth.rs says how this is read.

--- an optional filter, given
-- :team string "Ajax"
-- :least integer 3
SELECT count(*) FROM matches WHERE (:team IS NULL OR team = :team) AND (:least IS NULL OR goals >= :least);

--- an optional filter, left out
-- :team string null
-- :least integer null
SELECT count(*) FROM matches WHERE (:team IS NULL OR team = :team) AND (:least IS NULL OR goals >= :least);

--- half of an optional filter
-- :side string "home"
-- :team string null
SELECT sum(fee) FROM matches WHERE (:side::side IS NULL OR side = :side::side) AND team = coalesce(:team, team);

--- a number with a fraction beside whole numbers
-- :n number 2.5
SELECT sum(id) / :n FROM matches;

--- a whole number that is declared to be any number
-- :n number 4
SELECT max(id) / :n FROM staff;

--- whole numbers times one that is declared to be any number
-- :n number 4
SELECT sum(id * :n) FROM staff;

--- a sum of parameters alone
-- :i integer 2
-- :j integer 40
SELECT :i + :j;

--- whole numbers at their ends
-- :least integer -9223372036854775808
-- :most integer 9223372036854775807
SELECT sum(views) FROM matches WHERE views BETWEEN :least AND :most;

--- exact numbers compared
-- :fee number 12345.678
SELECT count(*) FROM matches WHERE fee > :fee;

--- a number that is very small
-- :n number 1e-300
SELECT (:n::float8 * 1e300::float8)::float8;

--- floats compared
-- :weight number 3.3333333333333335
SELECT string_agg(id::text, ',' ORDER BY id) FROM matches WHERE weight = :weight;

--- a page of an order, as one text
-- :n integer 5
-- :from integer 10
SELECT string_agg(id::text, ',' ORDER BY id) FROM (SELECT id FROM matches ORDER BY team, id LIMIT :n OFFSET :from) AS s;

--- one of a list that is written in a text
-- :list string "1,2,5"
SELECT sum(pay) FROM staff WHERE id = ANY (string_to_array(:list, ',')::int[]);

--- one of some
-- :a integer 1
-- :b integer 7
SELECT string_agg(name, ',' ORDER BY name) FROM staff WHERE id IN (:a, :b, 3) AND id NOT IN (:b);

--- between two days, whichever comes first
-- :to date "2026-03-01"
-- :from date "2026-03-15"
SELECT count(*) FROM matches WHERE day BETWEEN SYMMETRIC :from AND :to;

--- since a moment
-- :since timestamp "2026-03-10T12:00:00.000001Z"
SELECT min(played) FROM matches WHERE played >= :since;

--- a moment beside a clock without a zone
-- :since timestamp "2026-03-10T12:00:00Z"
SELECT min(shown) FROM matches WHERE shown >= :since;

--- days before a moment
-- :until timestamp "2026-03-10T12:00:00Z"
SELECT count(*) FROM matches WHERE played >= :until::timestamptz - interval '7 days' AND played < :until;

--- a month of a day
-- :day date "2026-03-31"
SELECT (date_trunc('month', :day::date) + interval '1 month - 1 day')::date;

--- fields of a day, whose type only its declaration tells
-- :day date "2026-03-31"
SELECT extract(isodow from :day) * 100 + extract(week from :day);

--- a moment told in a zone
-- :at timestamp "2026-07-01T22:30:00Z"
-- :zone string "Europe/Berlin"
SELECT to_char(:at AT TIME ZONE :zone, 'YYYY-MM-DD HH24:MI');

--- a span of time that is written in a text
-- :span string "36 hours"
SELECT count(*) FROM matches WHERE played < timestamptz '2026-03-01 00:00+00' + :span::interval;

--- as many days as a number says
-- :days integer 10
SELECT max(day) - make_interval(days => :days) FROM matches;

--- a list as long as a number says
-- :n integer 12
SELECT string_agg(to_char(d, 'MM-DD'), ' ' ORDER BY d) FROM generate_series(date '2026-01-01', date '2026-01-01' + (:n - 1), interval '1 day') AS g (d);

--- a slice as long as a number says
-- :n integer 2
SELECT array_to_string((ARRAY['a', 'b', 'c'])[1 : :n], '+');

--- a text with all that is special
-- :t string "it's \"q\" \\ % _ : $1 ?\n\té漢🦀"
SELECT :t || '|' || length(:t);

--- an empty text
-- :t string ""
SELECT coalesce(nullif(:t, ''), 'nothing') || count(*) FROM texts WHERE v = :t;

--- what a text contains
-- :q string "EL"
SELECT string_agg(DISTINCT team, ',' ORDER BY team) FROM matches WHERE team ILIKE '%' || :q || '%';

--- a pattern
-- :p string "^[AB]"
SELECT count(*) FROM matches WHERE team ~ :p AND rival !~* :p;

--- an enumeration by its word
-- :side string "away"
SELECT count(*) FROM matches WHERE side = :side;

--- a key
-- :key string "{C4CA4238-A0B9-2382-0DCC-509A6F75849B}"
SELECT id FROM matches WHERE key = :key;

--- a network
-- :address string "10.1.2.3"
SELECT (inet '10.0.0.0/8' >> :address)::text;

--- yes or no
-- :final boolean true
SELECT count(*) FROM matches WHERE is_final = :final;

--- yes or no by itself
-- :on boolean false
-- :off boolean null
SELECT count(*) FROM staff WHERE NOT :on OR :off;

--- a member of documents by its name
-- :key string "n"
SELECT sum((notes ->> :key)::int) FROM matches WHERE notes ? :key;

--- a path through documents with a variable
-- :least number 100.5
SELECT count(*) FROM matches WHERE jsonb_path_exists(notes, '$.list[*] ? (@ > $least)', jsonb_build_object('least', :least));

--- words to look for
-- :q string "dogs or rain"
SELECT string_agg(title, ';' ORDER BY id) FROM documents WHERE words @@ websearch_to_tsquery('english', :q);

--- a percentile of the caller's
-- :p number 0.9
SELECT percentile_cont(:p) WITHIN GROUP (ORDER BY weight) FROM matches;

--- a parameter in many places
-- :n integer 3
WITH RECURSIVE steps (i) AS (SELECT :n::int UNION ALL SELECT i + :n FROM steps WHERE i < :n * 10) SELECT string_agg(i::text, ',' ORDER BY i) || '/' || :n FROM steps;

--- what looks like a parameter
-- :a string "v"
SELECT ':b' || :a || $$:c$$ || (ARRAY['x'])[1:1]::text || E':d\'' || '12:30'::time || (SELECT ":e" FROM (SELECT 'n' AS ":e") AS s) /* :f */;

--- a number rounded as the caller wants
-- :places integer 3
SELECT round(avg(fee), :places) FROM matches;

--- a number in a function of every type
-- :n integer 7
SELECT concat('n', :n) || to_char(:n, 'FM000') || format('%s', :n);

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
-- :n integer 5
SELECT :n;

--- an element of a document by its place
-- :place integer 1
SELECT ('["a", "b", "c"]'::jsonb) ->> :place;

--- a day and a number of days
-- :day date "2026-03-31"
SELECT :day + 7;

--- a day and a span of time
-- :day date "2026-03-31"
SELECT count(*) FROM matches WHERE played >= :day - interval '7 days';

--- a day and a number of days, as a day
-- :day date "2026-03-31"
SELECT (:day + 7)::date;

--- a day and a number of days before it
-- :day date "2026-03-31"
-- :days integer 30
SELECT string_agg(id::text, ',' ORDER BY id) FROM matches WHERE day BETWEEN :day - :days AND :day;

--- so many days before the last one
-- :days integer 10
SELECT max(day) - :days FROM matches;

--- so many days behind the first one
-- :days integer 10
SELECT min(day) + :days FROM matches;

--- since so many days before a day, of a key
-- :key string "c4ca4238-a0b9-2382-0dcc-509a6f75849b"
-- :days integer 30
SELECT count(*) FROM matches WHERE key = :key AND day > date '2026-03-01' - :days;

--- the later one of two days
-- :a date "2026-03-31"
-- :b date "2026-04-01"
SELECT greatest(:a, :b);

--- a part of a text from a place on
-- :from integer 3
SELECT substring('abcdef', :from);

--- a number in a text
-- :n number 4
SELECT :n || ' goals';

--- yes or no in a text
-- :on boolean true
SELECT 'on: ' || :on::text;

--- a moment in a text
-- :at timestamp "2026-03-31T12:00:00.5Z"
SELECT 'at ' || :at::text;

--- a number that is left out, in a text
-- :n integer null
SELECT coalesce(length(:n::text), 0);

--- a moment and a span of time
-- :at timestamp "2026-03-31T00:00:00Z"
SELECT max(played) FROM matches WHERE played < :at - interval '2 hours';
