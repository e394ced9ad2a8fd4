-- Statements with parameters: assets, of which each answers one value. breadth.rs says how this is read.

--- an optional filter, given
-- :team string "Ajax"
-- :least integer 3
SELECT COUNT(*) FROM matches WHERE (:team IS NULL OR team = :team) AND (:least IS NULL OR goals >= :least);

--- an optional filter, left out
-- :team string null
-- :least integer null
SELECT COUNT(*) FROM matches WHERE (:team IS NULL OR team = :team) AND (:least IS NULL OR goals >= :least);

--- half of an optional filter
-- :side string "home"
-- :team string null
SELECT SUM(fee) FROM matches WHERE side = :side AND team = COALESCE(:team, team);

--- optional filters of all other types, left out
-- :n number null
-- :on boolean null
-- :day date null
-- :at timestamp null
SELECT COUNT(*) FROM matches WHERE (:n IS NULL OR fee > :n) AND (:on IS NULL OR is_final = :on) AND (:day IS NULL OR day > :day) AND (:at IS NULL OR played > :at);

--- optional filters of all other types, given
-- :n number 1000.5
-- :on boolean false
-- :day date "2026-03-01"
-- :at timestamp "2026-03-10T12:00:00Z"
SELECT COUNT(*) FROM matches WHERE (:n IS NULL OR fee > :n) AND (:on IS NULL OR is_final = :on) AND (:day IS NULL OR day > :day) AND (:at IS NULL OR played > :at);

--- a number with a fraction beside whole numbers
-- :n number 2.5
SELECT SUM(id) / :n FROM matches;

--- a whole number that is declared to be any number
-- :n number 4
SELECT MAX(id) / :n FROM staff;

--- whole numbers divided by whole ones
-- :n integer 4
SELECT MAX(id) / :n FROM staff;

--- whole numbers divided by whole ones, without a fraction
-- :n integer 4
SELECT MAX(id) DIV :n * 10 + MAX(id) % :n FROM staff;

--- a sum of parameters alone
-- mariadb: MySQL computes with doubles where nothing but parameters says what they are
-- :i integer 2
-- :j integer 40
SELECT :i + :j;

--- a sum of two kinds of numbers
-- :i integer 2
-- :j number 0.1
SELECT :i + :j;

--- a sum with nothing
-- :i integer 2
-- :j integer null
SELECT COALESCE(:i + :j, 'nothing');

--- a number by itself
-- :n integer 5
SELECT :n;

--- any number by itself
-- :n number 0.1
SELECT :n;

--- a text by itself
-- :t string "größe"
SELECT :t;

--- yes by itself
-- :on boolean true
SELECT :on;

--- a day by itself
-- :day date "2026-03-31"
SELECT :day;

--- a moment by itself
-- :at timestamp "2026-03-31T12:00:00.000001Z"
SELECT :at;

--- the least whole number
-- :n integer -9223372036854775808
SELECT :n;

--- whole numbers at their ends
-- :least integer 0
-- :most integer 9223372036854775807
SELECT COUNT(*) FROM numbers WHERE big BETWEEN :least AND :most;

--- whole numbers at their ends, beside unsigned ones
-- :n integer 9223372036854775807
SELECT COUNT(*) FROM matches WHERE views > :n;

--- a number of more than 64 bits, as a text
-- mariadb: MySQL takes a parameter of CAST for a number of 64 bits with a sign
-- :n string "18446744073709551610"
SELECT id FROM matches WHERE views = CAST(:n AS UNSIGNED);

--- a negative number beside unsigned ones
-- :n integer -1
SELECT COUNT(*) FROM matches WHERE views > :n;

--- exact numbers compared
-- :fee number 12345.678
SELECT COUNT(*) FROM matches WHERE fee > :fee;

--- an exact number found
-- :fee number 9876.54
SELECT GROUP_CONCAT(id) FROM matches WHERE fee = :fee;

--- a number that is very small
-- :n number 1e-300
SELECT :n * 1e300;

--- a number that is very large
-- :n number 1.7976931348623157e308
SELECT COUNT(*) FROM numbers WHERE d = :n;

--- floats compared
-- :weight number 3.3333333333333335
SELECT GROUP_CONCAT(id ORDER BY id) FROM matches WHERE weight = :weight;

--- a page of an order, as one text
-- :n integer 5
-- :from integer 10
SELECT GROUP_CONCAT(id ORDER BY id) FROM (SELECT id FROM matches ORDER BY team, id LIMIT :n OFFSET :from) AS s;

--- a page of an order, in the older way
-- :n integer 2
-- :from integer 1
SELECT GROUP_CONCAT(id ORDER BY id) FROM (SELECT id FROM matches ORDER BY team, id LIMIT :from, :n) AS s;

--- no row of a page
-- :n integer 0
SELECT COUNT(*) FROM (SELECT id FROM matches LIMIT :n) AS s;

--- a number of rows below zero, which a literal cannot have and the server takes for a large one
-- mariadb: MySQL refuses it
-- :n integer -1
-- answers {"n": 7}
SELECT COUNT(*) AS n FROM (SELECT id FROM staff LIMIT :n) AS s;

--- a number of rows with a fraction, which a literal cannot have and the server rounds
-- mariadb: MySQL refuses it
-- :n number 1.5
-- answers {"n": 2}
SELECT COUNT(*) AS n FROM (SELECT id FROM staff LIMIT :n) AS s;

--- no number of rows, which the server takes for none
-- :n integer null
-- answers {"n": 0}
SELECT COUNT(*) AS n FROM (SELECT id FROM staff LIMIT :n) AS s;

--- one of a list that is written in a text
-- :list string "1,2,5"
SELECT SUM(pay) FROM staff WHERE FIND_IN_SET(id, :list);

--- one of a list that is written in JSON
-- :list string "[1, 2, 5]"
SELECT SUM(s.pay) FROM staff AS s JOIN JSON_TABLE(:list, '$[*]' COLUMNS (id INT PATH '$')) AS l ON l.id = s.id;

--- one of some
-- :a integer 1
-- :b integer 7
SELECT GROUP_CONCAT(name ORDER BY name) FROM staff WHERE id IN (:a, :b, 3) AND id NOT IN (:b);

--- one of some, of which one is left out
-- :a string "Ajax"
-- :b string null
SELECT COUNT(*) FROM matches WHERE team IN (:a, :b, 'Celtic');

--- between two days
-- :from date "2026-03-01"
-- :to date "2026-03-15"
SELECT COUNT(*) FROM matches WHERE day BETWEEN :from AND :to;

--- since a moment
-- :since timestamp "2026-03-10T12:00:00.000001Z"
SELECT MIN(played) FROM matches WHERE played >= :since;

--- a moment that is found to the microsecond
-- :at timestamp "2026-02-26T11:43:00.000001Z"
SELECT COUNT(*) FROM matches WHERE played = :at;

--- a moment beside a clock without a zone
-- :since timestamp "2026-03-10T12:00:00Z"
SELECT MIN(shown) FROM matches WHERE shown >= :since;

--- a moment beside a day
-- :at timestamp "2026-03-10T12:00:00Z"
SELECT MIN(day) FROM matches WHERE day >= :at;

--- a day beside a moment
-- :day date "2026-03-10"
SELECT MIN(played) FROM matches WHERE played >= :day;

--- days before a moment
-- :until timestamp "2026-03-10T12:00:00Z"
SELECT COUNT(*) FROM matches WHERE played >= :until - INTERVAL 7 DAY AND played < :until;

--- the last day of a day's month
-- :day date "2026-02-10"
SELECT LAST_DAY(:day);

--- fields of a day, whose type only its declaration tells
-- :day date "2026-03-31"
SELECT DAYOFWEEK(:day) * 100 + WEEK(:day, 3);

--- a day and a number of days
-- :day date "2026-03-31"
-- :n integer 7
SELECT :day + INTERVAL :n DAY;

--- a day that is told
-- :day date "2026-03-31"
SELECT DATE_FORMAT(:day, '%d.%m.%Y');

--- a difference of two days
-- :a date "2026-03-31"
-- :b date "2026-02-01"
SELECT DATEDIFF(:a, :b);

--- the later one of two days
-- :a date "2026-03-31"
-- :b date "2026-04-01"
SELECT GREATEST(:a, :b);

--- a moment told in a zone
-- :at timestamp "2026-07-01T22:30:00Z"
-- :zone string "+02:00"
SELECT DATE_FORMAT(CONVERT_TZ(:at, '+00:00', :zone), '%Y-%m-%d %H:%i');

--- the seconds of a moment
-- mariadb: MySQL takes a parameter for one with six digits
-- :at timestamp "2026-07-01T22:30:00Z"
SELECT UNIX_TIMESTAMP(:at);

--- a span of time that is written in a text
-- :span string "100:30:00"
SELECT COUNT(*) FROM times WHERE t >= :span;

--- a span of time that is made of a number
-- mariadb: MySQL takes a parameter for one with six digits
-- :n integer -100000
SELECT SEC_TO_TIME(:n);

--- a list as long as a number says
-- :n integer 12
SELECT GROUP_CONCAT(seq) FROM seq_1_to_100 WHERE seq <= :n;

--- a text with all that is special
-- :t string "it's \"q\" \\ % _ : $1 ?\n\té漢🦀"
SELECT CONCAT(:t, '|', CHAR_LENGTH(:t)) AS told;

--- an empty text
-- :t string ""
SELECT CONCAT(COALESCE(NULLIF(:t, ''), 'nothing'), COUNT(*)) FROM texts WHERE v = :t;

--- a text of nothing but blanks
-- :t string "  "
SELECT CONCAT('<', :t, '>', CHAR_LENGTH(:t));

--- what a text contains
-- :q string "EL"
SELECT GROUP_CONCAT(DISTINCT team ORDER BY team) FROM matches WHERE team LIKE CONCAT('%', :q, '%');

--- a pattern with a wildcard
-- :p string "%_i%"
SELECT GROUP_CONCAT(DISTINCT team ORDER BY team) FROM matches WHERE team LIKE :p;

--- a pattern with an escape
-- :p string "10!%"
SELECT COUNT(*) FROM (SELECT '10%' AS v UNION ALL SELECT '100') AS s WHERE v LIKE :p ESCAPE '!';

--- a pattern of a regular expression
-- :p string "^[AB]"
SELECT COUNT(*) FROM matches WHERE team REGEXP :p AND rival NOT RLIKE :p;

--- a collation
-- :t string "evian"
SELECT COUNT(*) FROM matches WHERE team COLLATE utf8mb4_bin = :t OR team COLLATE utf8mb4_unicode_ci = :t;

--- a text that another character set has
-- :t string "größe"
SELECT COUNT(*) FROM texts WHERE latin = :t;

--- an enumeration by its word
-- :side string "away"
SELECT COUNT(*) FROM matches WHERE side = :side;

--- an enumeration by its number
-- :side integer 2
SELECT COUNT(*) FROM matches WHERE side = :side;

--- a word that no enumeration has
-- :side string "nowhere"
SELECT COUNT(*) FROM matches WHERE side = :side;

--- a set
-- :tags string "cup,final"
SELECT COUNT(*) FROM matches WHERE tags = :tags;

--- a key
-- :code string "00000000-0001-4000-8000-0123456789AB"
SELECT id FROM matches WHERE code = :code;

--- a text that is no key
-- :code string "nonsense"
SELECT COUNT(*) FROM matches WHERE code = :code;

--- an address
-- mariadb: it has such a type
-- :net string "2001:DB8:0:0::FF00:42:8329"
SELECT id FROM texts WHERE net = :net;

--- bytes in a text
-- :t string "text"
SELECT COUNT(*) FROM texts WHERE raw = :t;

--- bytes in hexadecimal
-- :t string "00ff"
SELECT HEX(REVERSE(UNHEX(:t)));

--- yes or no
-- :final boolean true
SELECT COUNT(*) FROM matches WHERE is_final = :final;

--- yes or no by itself, in a condition
-- :on boolean false
-- :off boolean null
SELECT COUNT(*) FROM staff WHERE NOT :on OR :off;

--- yes or no beside a bit
-- :on boolean true
SELECT COUNT(*) FROM numbers WHERE bit1 = :on;

--- a member of documents by its path
-- mariadb: a path is a literal to MySQL
-- :path string "$.n"
SELECT SUM(JSON_VALUE(notes, :path)) FROM matches;

--- a value within a document
-- mariadb: MySQL takes no number for a document
-- :n integer 12
SELECT GROUP_CONCAT(id) FROM matches WHERE JSON_CONTAINS(notes, :n, '$.list');

--- a document of what is given
-- mariadb: it is a text
-- :t string "a \"b\""
-- :n integer 1
-- :f number 1.5
SELECT JSON_OBJECT('t', :t, 'n', :n, 'f', :f);

--- words to look for
-- :q string "rain"
SELECT GROUP_CONCAT(id) FROM words WHERE MATCH (body) AGAINST (:q IN BOOLEAN MODE);

--- a parameter in many places
-- :n integer 3
WITH RECURSIVE steps (i) AS (SELECT CAST(:n AS SIGNED) UNION ALL SELECT i + :n FROM steps WHERE i < :n * 10) SELECT CONCAT(GROUP_CONCAT(i ORDER BY i), '/', :n) FROM steps;

--- what looks like a parameter
-- :a string "v"
SELECT CONCAT(':b', :a, ":c", '\':d', `:e`, '12:30') FROM (SELECT 'n' AS `:e`) AS s # :f
/* :g */ -- :h
;

--- a number rounded as the caller wants
-- mariadb: MySQL keeps the digits of what is rounded
-- :places integer 3
SELECT ROUND(AVG(fee), :places) FROM matches;

--- a number in functions of every type
-- :n integer 7
SELECT CONCAT('n', :n, LPAD(:n, 3, '0'), FORMAT(:n, 2), HEX(:n));

--- a number in a text
-- :n number 4
SELECT CONCAT(:n, ' goals');

--- the greater of two numbers
-- :a integer 9
-- :b integer 10
SELECT GREATEST(:a, :b);

--- one of two numbers
-- :yes boolean true
-- :a number 1.5
-- :b number 2.5
SELECT CASE WHEN :yes THEN :a ELSE :b END;

--- a part of a text from a place on
-- :from integer 3
SELECT SUBSTRING('abcdef', :from);

--- an order that the caller chooses
-- :by string "pay"
SELECT GROUP_CONCAT(name ORDER BY CASE :by WHEN 'pay' THEN pay WHEN 'id' THEN -id END DESC, id) FROM staff;

--- a window's place
-- :n integer 2
SELECT MAX(second) FROM (SELECT NTH_VALUE(id, :n) OVER (ORDER BY pay DESC, id ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS second FROM staff) AS s;

--- a group that the caller chooses
-- :least integer 10
SELECT GROUP_CONCAT(team ORDER BY team) FROM (SELECT team FROM matches GROUP BY team HAVING SUM(goals) > :least) AS s;

--- a function of the seller's own
-- :n integer 21
SELECT doubled(:n);

--- a lock of a name that the caller chooses, which is given up behind the statement
-- :name string "souk"
SELECT get_lock(:name, 10);

--- a division by zero is nothing
-- :n integer 0
SELECT COALESCE(1 / :n, 'nothing');

--- a text that is no number counts as none
-- :t string "12abc"
SELECT CAST(:t AS SIGNED) + :t;

--- a text that is no day is nothing
-- :t string "no day"
SELECT COALESCE(CAST(:t AS DATE), 'nothing');

--- a row of parameters
-- :a integer 2
-- :b integer 1
SELECT name FROM staff WHERE (id, boss) = (:a, :b);

--- a long text
-- :t string "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890"
SELECT CONCAT(LENGTH(:t), MD5(:t));
