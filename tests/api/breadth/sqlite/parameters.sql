-- Statements with parameters: assets, of which each answers one value. breadth.rs says how this is read.

--- an optional filter, given
-- :team string "ajax"
-- :least integer 3
SELECT count(*) FROM matches WHERE (:team IS NULL OR team = :team) AND (:least IS NULL OR goals >= :least);

--- an optional filter, left out
-- :team string null
-- :least integer null
SELECT count(*) FROM matches WHERE (:team IS NULL OR team = :team) AND (:least IS NULL OR goals >= :least);

--- a whole number that is declared to be any number
-- :n number 4
SELECT max(id) / :n FROM staff;

--- a whole number
-- :n integer 4
SELECT max(id) / :n FROM staff;

--- whole numbers at their ends
-- :least integer -9223372036854775808
-- :most integer 9223372036854775807
SELECT sum(views) FROM matches WHERE views BETWEEN :least AND :most;

--- floats compared
-- :weight number 3.3333333333333335
SELECT group_concat(id) FROM matches WHERE weight = :weight;

--- a number that is very small
-- :n number 1e-300
SELECT :n * 1e300;

--- a number by itself
-- :n number 0.1
SELECT :n;

--- a page of an order, as one text
-- :n integer 5
-- :from integer 10
SELECT group_concat(id) FROM (SELECT id FROM matches ORDER BY team, id LIMIT :n OFFSET :from);

--- one of a list that is written in a document
-- :list string "[1, 2, 5]"
SELECT sum(pay) FROM staff WHERE id IN (SELECT value FROM json_each(:list));

--- between two days
-- :from date "2026-03-01"
-- :to date "2026-03-15"
SELECT count(*) FROM matches WHERE day BETWEEN :from AND :to;

--- since a moment
-- :since timestamp "2026-03-10T12:00:00Z"
SELECT min(played) FROM matches WHERE played >= :since;

--- a month of a day
-- :day date "2026-02-28"
SELECT date(:day, 'start of month', '+1 month', '-1 day');

--- a day and a number of days
-- :day date "2026-03-31"
-- :days integer 7
SELECT date(:day, '+' || :days || ' days');

--- a text with all that is special
-- :t string "it's \"q\" \\ % _ : $1 ?\n\té漢🦀"
SELECT :t || '|' || length(:t);

--- an empty text
-- :t string ""
SELECT coalesce(nullif(:t, ''), 'nothing') || count(*) FROM texts WHERE v = :t;

--- what a text contains
-- :q string "EL"
SELECT group_concat(DISTINCT team) FROM matches WHERE team LIKE '%' || :q || '%';

--- yes or no
-- :final boolean true
SELECT count(*) FROM matches WHERE is_final = :final;

--- yes or no by itself
-- :on boolean false
-- :off boolean null
SELECT count(*) FROM staff WHERE NOT :on OR :off;

--- a member of documents by its name
-- :key string "n"
SELECT sum(notes ->> :key) FROM matches;

--- an element of a document by its place
-- :place integer 1
SELECT '["a", "b", "c"]' ->> :place;

--- words to look for
-- :q string "dogs OR rain"
SELECT group_concat(title, ';' ORDER BY rowid) FROM documents WHERE documents MATCH :q;

--- places by their bounds
-- :west number 5.3
SELECT group_concat(name, ';' ORDER BY id) FROM places WHERE west <= :west AND east >= 5.5;

--- a percentile of the caller's
-- :p number 75
-- answers {"v": 3.25}
SELECT percentile(column1, :p) AS v FROM (VALUES (1), (2), (3), (4));

--- a parameter in many places
-- :n integer 3
WITH RECURSIVE steps (i) AS (SELECT :n UNION ALL SELECT i + :n FROM steps WHERE i < :n * 10) SELECT group_concat(i) || '/' || :n FROM steps;

--- what looks like a parameter
-- :a string "v"
SELECT ':b' || :a || [:c] || ":d" || `:e` /* :f */ FROM (SELECT 'x' AS ":c", 'y' AS ":d", 'z' AS ":e") -- :g

--- the greater of two numbers
-- :a integer 9
-- :b integer 10
SELECT max(:a, :b);

--- one of two numbers
-- :yes boolean true
-- :a number 1.5
-- :b number 2.5
SELECT CASE WHEN :yes THEN :a ELSE :b END;
