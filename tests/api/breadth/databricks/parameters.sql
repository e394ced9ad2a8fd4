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
SELECT sum(id) DIV :n FROM staff;

--- exact numbers compared
-- :fee number 12345.678
SELECT count(*) FROM matches WHERE fee > :fee;

--- a number that is very small
-- :n number 1e-300
SELECT :n * 1e300D;

--- a number that is very large
-- :n number 1.7976931348623157e308
SELECT :n / 10;

--- floats compared
-- :weight number 3.3333333333333335
SELECT array_join(sort_array(collect_list(id)), ',') FROM matches WHERE weight = :weight;

--- a page of an order, as one text
-- :n integer 5
-- :from integer 10
SELECT array_join(collect_list(id), ',') FROM (SELECT id FROM matches ORDER BY team, id LIMIT 5) WHERE id > :from OR id < :n;

--- one of a list that is written in a text
-- :list string "1,2,5"
SELECT sum(pay) FROM staff WHERE array_contains(split(:list, ','), CAST(id AS STRING));

--- one of some
-- :a integer 1
-- :b integer 7
SELECT array_join(sort_array(collect_list(name)), ',') FROM staff WHERE id IN (:a, :b, 3) AND id NOT IN (:b);

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
SELECT count(*) FROM matches WHERE played >= :until - INTERVAL '7' DAY AND played < :until;

--- days before a day
-- :until date "2026-03-10"
-- :days integer 7
SELECT count(*) FROM matches WHERE day BETWEEN date_sub(:until, CAST(:days AS INT)) AND :until;

--- a text with everything that hurts
-- :v string "it's \\ \"quoted\" -- ; /* 漢字 🦀 \n\t` $ :x"
SELECT :v;

--- a text that is empty
-- :v string ""
SELECT concat('[', :v, ']', length(:v));

--- a text of zeros
-- :v string "007"
SELECT :v;

--- a text beside a pattern
-- :v string "%a_"
SELECT count(*) FROM matches WHERE team LIKE :v;

--- a text within a pattern
-- :v string "a"
SELECT count(*) FROM matches WHERE team LIKE concat('%', :v, '%');

--- a text that is a number, beside numbers
-- :v string "3"
SELECT count(*) FROM matches WHERE goals = CAST(:v AS INT);

--- truth by itself
-- :b boolean true
SELECT NOT :b;

--- truth in a condition
-- :b boolean true
SELECT count(*) FROM matches WHERE is_final = :b;

--- truth as a condition
-- :b boolean false
SELECT CASE WHEN :b THEN 'yes' ELSE 'no' END;

--- a parameter many times
-- :n integer 3
SELECT :n + :n * :n - (SELECT count(*) FROM matches WHERE goals = :n OR id = :n);

--- parameters within a table expression
-- :n integer 3
-- :team string "Ajax"
WITH a AS (SELECT id FROM matches WHERE team = :team AND goals >= :n) SELECT count(*) FROM a WHERE id > :n;

--- a parameter in a function
-- :n integer 4
SELECT lpad('7', CAST(:n AS INT), '0');

--- a parameter in a window
-- :n integer 2
SELECT max(v) FROM (SELECT lag(id, 1, CAST(:n AS INT)) OVER (ORDER BY id) AS v FROM staff);

--- a parameter in a list
-- :n integer 2
SELECT array_join(array(1, :n, 3), ',');

--- a parameter in a lambda
-- :n integer 2
SELECT aggregate(transform(array(1, 2, 3), x -> x * :n), 0L, (a, x) -> a + x);

--- a parameter of a seller's function
-- :team string "Ajax"
SELECT sum(goals) FROM of_team(:team);

--- a parameter of a seller's function that computes
-- :n integer 21
SELECT doubled(CAST(:n AS INT));

--- names that look like parameters
-- :n integer 2
SELECT concat(':m ', ":o", `:p`, :n) FROM (SELECT 1 AS `:p`) -- :q
;

--- a cast right behind a parameter
-- :n integer 2
SELECT :n::STRING;

--- a parameter that is NULL beside a number
-- :n integer null
SELECT coalesce(:n, 7) + 1;

--- a number that is NULL beside exact ones
-- :n number null
SELECT coalesce(:n, max(fee)) FROM matches;

--- a day that is NULL
-- :day date null
SELECT coalesce(:day, DATE '2026-01-01');

--- a moment that is NULL
-- :at timestamp null
SELECT coalesce(:at, TIMESTAMP '2026-01-01 00:00:00Z');

--- a text that is NULL
-- :v string null
SELECT :v || 'x';

--- a part of a struct by a parameter
-- :zip integer 10003
SELECT count(*) FROM matches WHERE seat.zip = :zip;

--- a part of a map by a parameter
-- :key string "goals"
SELECT sum(counts[:key]) FROM matches;

--- a whole number beside a fraction
-- :n integer 3
SELECT round(:n / 7, 4);

--- the most of a few
-- :a number 1.25
-- :b integer 1
SELECT greatest(:a, :b);

--- a day of a moment
-- :at timestamp "2026-03-10T23:30:00Z"
SELECT CAST(:at AS DATE);

--- a moment with all its digits
-- :at timestamp "2026-03-10T23:30:00.123456Z"
SELECT :at;

--- an exact number by itself
-- :n number 0.1
SELECT CAST(:n AS DECIMAL(10, 5));

--- a percentile that a caller asks for
-- :p number 0.25
SELECT percentile_approx(id, 0.5) + :p FROM matches;
