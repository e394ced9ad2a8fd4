-- Statements with parameters: assets, of which each answers one value. breadth.rs says how this is read.

--- an optional filter, given
-- :team string "Ajax"
-- :least integer 3
SELECT count() FROM matches WHERE (:team IS NULL OR team = :team) AND (:least IS NULL OR goals >= :least);

--- an optional filter, left out
-- :team string null
-- :least integer null
SELECT count() FROM matches WHERE (:team IS NULL OR team = :team) AND (:least IS NULL OR goals >= :least);

--- optional filters of the other types, left out
-- :fee number null
-- :day date null
-- :at timestamp null
-- :final boolean null
SELECT count() FROM matches WHERE (:fee IS NULL OR fee < :fee) AND (:day IS NULL OR day = :day) AND (:at IS NULL OR played < :at) AND (:final IS NULL OR is_final = :final);

--- optional filters of the other types, given
-- :fee number 60000.5
-- :day date "2026-03-02"
-- :at timestamp "2026-05-01T00:00:00Z"
-- :final boolean false
SELECT count() FROM matches WHERE (:fee IS NULL OR fee < :fee) AND (:day IS NULL OR day >= :day) AND (:at IS NULL OR played < :at) AND (:final IS NULL OR is_final = :final);

--- half of an optional filter
-- :side string "home"
-- :team string null
SELECT sum(fee) FROM matches WHERE (:side IS NULL OR side = :side) AND team = coalesce(:team, team);

--- an optional filter of what is before the rest
-- :team string "Celtic"
SELECT sum(goals) FROM matches PREWHERE team = ifNull(:team, team) WHERE goals > 1;

--- a sum of parameters alone
-- :i integer 2
-- :j integer 40
SELECT :i + :j;

--- whole numbers at their ends
-- :least integer -9223372036854775808
-- :most integer 9223372036854775807
SELECT count() FROM numbers_of_all WHERE i64 BETWEEN :least AND :most;

--- a whole number at its end by itself
-- :n integer -9223372036854775808
SELECT :n;

--- a whole number that goes around, as all do at this source
-- :n integer 9223372036854775807
SELECT :n + 1;

--- a whole number beside one without a sign
-- :n integer 9223372036854775807
SELECT count() FROM matches WHERE views > :n;

--- a whole number beside one of 256 bits
-- :n integer -1
SELECT min(i256) + :n FROM numbers_of_all WHERE id > 2;

--- a number with a fraction beside whole numbers
-- :n number 2.5
SELECT sum(id) / :n FROM matches;

--- a whole number that is declared to be any number
-- :n number 4
SELECT max(id) / :n FROM staff;

--- whole numbers divided by a whole number
-- :n integer 4
SELECT intDiv(sum(id), :n) FROM staff;

--- exact numbers compared with any
-- :fee number 12345.67
SELECT count() FROM matches WHERE fee > :fee;

--- exact numbers compared with a text that is made exact
-- :fee string "12345.67"
SELECT groupConcat(',')(id) FROM matches WHERE fee = toDecimal64(:fee, 2);

--- exact numbers times a whole one
-- :n integer 3
SELECT sum(pay) * :n FROM staff;

--- a number that is very small
-- :n number 1e-300
SELECT :n * 1e300;

--- a number that is very large
-- :n number 1.7976931348623157e308
SELECT :n / 10;

--- floats compared
-- :weight number 3.3333333333333335
SELECT groupConcat(',')(id) FROM matches WHERE weight = :weight;

--- a float of 32 bits compared with one of 64
-- :ratio number 0.5
SELECT count() FROM matches WHERE ratio <= :ratio;

--- a page of an order, as one text
-- :n integer 5
-- :from integer 10
SELECT groupConcat(',')(id) FROM (SELECT id FROM matches ORDER BY team, id LIMIT :n OFFSET :from);

--- a page of an order, the other way around
-- :n integer 5
-- :from integer 10
SELECT groupConcat(',')(id) FROM (SELECT id FROM matches ORDER BY team, id LIMIT :from, :n);

--- a page of nothing
-- :n integer 0
SELECT count() FROM (SELECT id FROM matches ORDER BY id LIMIT :n);

--- some rows of each group
-- :n integer 2
SELECT count() FROM (SELECT team FROM matches ORDER BY id LIMIT :n BY team);

--- a part of the rows that are ordered
-- :n integer 3
SELECT groupConcat(',')(id) FROM (SELECT id, goals FROM matches ORDER BY goals DESC NULLS LAST, id LIMIT :n WITH TIES);

--- one of a list that is written in a text
-- :list string "1,2,5"
SELECT sum(pay) FROM staff WHERE has(arrayMap(x -> toInt32(x), splitByChar(',', :list)), id);

--- one of a list of texts
-- :list string "Ajax,it's,Évian"
SELECT count() FROM matches WHERE team IN (SELECT arrayJoin(splitByChar(',', :list)));

--- one of some
-- :a integer 1
-- :b integer 7
SELECT groupConcat(',')(name) FROM staff WHERE id IN (:a, :b, 3) AND id NOT IN (:b);

--- one of some texts
-- :a string "Ajax"
-- :b string "it's"
SELECT count() FROM matches WHERE team IN (:a, :b);

--- one of some days
-- :a date "2026-03-01"
-- :b date "2026-03-02"
SELECT count() FROM matches WHERE day IN (:a, :b);

--- one of some, of which one is nothing
-- :a integer 1
-- :b integer null
SELECT count() FROM staff WHERE id IN (:a, :b);

--- between two days
-- :from date "2026-03-01"
-- :to date "2026-03-15"
SELECT count() FROM matches WHERE day BETWEEN :from AND :to;

--- a day at the beginning of the calendar
-- :day date "1900-01-01"
SELECT :day;

--- a day at the end of the calendar
-- :day date "2299-12-31"
SELECT :day;

--- a day beside days that begin later
-- :day date "1969-12-31"
SELECT count() FROM matches WHERE day > :day AND far > :day;

--- since a moment
-- :since timestamp "2026-03-10T12:00:00.000001Z"
SELECT min(played) FROM matches WHERE played >= :since;

--- since a moment that is a whole second, beside a column of whole seconds
-- :since timestamp "2026-03-10T12:00:00Z"
SELECT min(shown) FROM matches WHERE shown >= :since;

--- a moment with a fraction beside a column of whole seconds
-- :since timestamp "2026-03-10T20:15:43.5Z"
SELECT min(shown) FROM matches WHERE shown >= :since;

--- a moment of a caller's zone
-- :since timestamp "2026-03-10T12:00:00+02:00"
SELECT count() FROM matches WHERE played >= :since;

--- a moment at the beginning of the calendar
-- :at timestamp "1900-01-01T00:00:00.000001Z"
SELECT :at;

--- a moment at the end of the calendar
-- :at timestamp "2299-12-31T23:59:59.999999Z"
SELECT :at;

--- a moment after the last of 32 bits
-- :at timestamp "2106-02-07T06:28:16Z"
SELECT count() FROM times WHERE s < :at AND t6 >= :at;

--- one of some moments
-- :a timestamp "2026-02-26T11:43:00.000001Z"
-- :b timestamp "2026-02-27T04:56:00.000001Z"
SELECT groupConcat(',')(id) FROM matches WHERE played IN (:a, :b);

--- days before a moment
-- :until timestamp "2026-03-10T12:00:00Z"
SELECT count() FROM matches WHERE played >= :until - INTERVAL 7 DAY AND played < :until;

--- a month of a day
-- :day date "2026-03-31"
SELECT toLastDayOfMonth(:day);

--- fields of a day
-- :day date "2026-03-31"
SELECT toDayOfWeek(:day) * 100 + toISOWeek(:day);

--- a moment told in a zone
-- :at timestamp "2026-07-01T22:30:00Z"
-- :zone string "Europe/Berlin"
SELECT formatDateTime(:at, '%Y-%m-%d %H:%i', :zone);

--- the day of a moment
-- :at timestamp "2026-03-31T23:30:00.5Z"
SELECT toDate(:at);

--- as many days as a number says
-- :days integer 10
SELECT max(day) - toIntervalDay(:days) FROM matches;

--- as many days as a number says, as a span of time
-- :days integer 10
SELECT min(played) + INTERVAL :days DAY FROM matches;

--- a day and a number of days
-- :day date "2026-03-31"
-- :days integer 7
SELECT :day + :days;

--- days between two days
-- :a date "2026-03-31"
-- :b date "2024-02-29"
SELECT dateDiff('day', :b, :a);

--- the later one of two days
-- :a date "2026-03-31"
-- :b date "2026-04-01"
SELECT greatest(:a, :b);

--- a group as wide as a number says
-- :hours integer 12
SELECT count() FROM (SELECT toStartOfInterval(played, toIntervalHour(:hours)) AS slot FROM matches GROUP BY slot);

--- a moment that is written in a text
-- :at string "2026-03-10T12:00:00+02:00"
SELECT count() FROM matches WHERE played >= parseDateTimeBestEffort(:at, 'UTC');

--- a day in a text beside a column of days
-- :day string "2026-03-01"
SELECT id FROM matches WHERE day = :day;

--- a series as long as a number says
-- :n integer 1000
SELECT sum(number) FROM numbers(:n);

--- a list as long as a number says
-- :n integer 4
SELECT arrayStringConcat(range(toUInt64(:n)), ',');

--- a slice as long as a number says
-- :n integer 2
SELECT arrayStringConcat(arraySlice(['a', 'b', 'c'], 1, :n), '+');

--- an element by its place
-- :n integer 2
SELECT ['a', 'b', 'c'][:n];

--- a value of a map by its name
-- :key string "corners"
SELECT sum(counts[:key]) FROM matches;

--- one that a list has
-- :tag string "rain"
SELECT count() FROM matches WHERE has(tags, :tag);

--- a parameter in a lambda
-- :n integer 10
SELECT arraySum(x -> x * :n, [1, 2, 3]);

--- a text with all that is special
-- :t string "it's \"q\" \\ % _ : $1 ?\n\t\r\b\fé漢🦀 -- /* ; {p1:String} \\N"
SELECT :t || '|' || length(:t);

--- a text that is the sign of nothing
-- :t string "\\N"
SELECT concat(:t, ':', length(:t));

--- a text that ends in a backslash
-- :t string "a\\"
SELECT concat(:t, ':', length(:t));

--- a text that looks like a part of a form
-- :t string "\r\n--souk-end-of-part--\r\nContent-Disposition: form-data; name=\"query\"\r\n\r\nSELECT 1"
SELECT length(:t);

--- a text that is a statement
-- :t string "' OR 1 = 1; DROP TABLE staff --"
SELECT count() FROM staff WHERE name = :t;

--- an empty text
-- :t string ""
SELECT concat(coalesce(nullIf(:t, ''), 'nothing'), count()) FROM texts WHERE v = :t;

--- no text
-- :t string null
SELECT coalesce(:t, 'nothing');

--- nothing by itself
-- :n integer null
SELECT ifNull(toString(:n + 1), 'nothing');

--- what a text contains
-- :q string "EL"
SELECT groupConcat(',')(team) FROM (SELECT DISTINCT toString(team) AS team FROM matches WHERE positionCaseInsensitive(team, :q) > 0 ORDER BY team);

--- a pattern of LIKE
-- :p string "%a_"
SELECT count() FROM matches WHERE team LIKE :p;

--- a pattern of LIKE around what is given
-- :q string "%"
SELECT count() FROM texts WHERE v LIKE concat('%\\', :q, '%');

--- a pattern of ILIKE
-- :p string "A%"
SELECT count() FROM matches WHERE team ILIKE :p AND rival NOT ILIKE :p;

--- a regular expression
-- :p string "^[AB]"
SELECT count() FROM matches WHERE match(team, :p);

--- a replacement
-- :from string "a"
-- :to string "\\0o"
SELECT groupConcat(',')(replaceRegexpAll(name, :from, :to)) FROM staff;

--- an enumeration by its word
-- :side string "away"
SELECT count() FROM matches WHERE side = :side;

--- an enumeration by some of its words
-- :a string "away"
-- :b string "home"
SELECT count() FROM matches WHERE side IN (:a, :b);

--- an enumeration by a word that it does not have
-- :side string "nowhere"
SELECT count() FROM matches WHERE toString(side) = :side;

--- a key
-- :key string "00000000-0007-4000-8000-0123456789ab"
SELECT id FROM matches WHERE code = :key;

--- an address
-- :at string "1.2.3.4"
SELECT id FROM texts WHERE v4 = :at;

--- a network
-- :net string "10.0.0.0/8"
SELECT count() FROM texts WHERE isIPAddressInRange(toString(v4), :net);

--- a text of a fixed length
-- :t string "ab"
SELECT id FROM texts WHERE f = :t;

--- a number in a text beside a column of numbers
-- :n string "7"
SELECT name FROM staff WHERE id = toInt32(:n);

--- a number in a text, cast
-- :n string "115792089237316195423570985008687907853269984665640564039457584007913129639935"
SELECT :n::UInt256;

--- yes or no
-- :final boolean true
SELECT count() FROM matches WHERE is_final = :final;

--- yes or no by itself
-- :on boolean false
-- :off boolean null
SELECT count() FROM staff WHERE NOT :on OR :off;

--- yes or no in a text
-- :on boolean true
SELECT concat('on: ', :on);

--- yes or no, answered
-- :on boolean true
SELECT toString(NOT :on);

--- a member of documents by its name
-- :key string "n"
SELECT JSONExtractInt('{"n": 7}', :key);

--- a member of documents by its path
-- :path string "$.a[1]"
SELECT JSON_VALUE('{"a": [1, "x"]}', :path);

--- a percentile of the call
-- :n number 90
SELECT arrayElement(arraySort(groupArray(id)), toInt32(ceil(count() * :n / 100))) FROM matches;

--- a parameter in many places
-- :n integer 3
WITH RECURSIVE steps AS (SELECT :n AS i UNION ALL SELECT i + :n FROM steps WHERE i < :n * 10) SELECT concat(arrayStringConcat(arraySort(groupArray(i)), ','), '/', :n) FROM steps;

--- a parameter that is called by a name of its own
-- :n integer 3
WITH :n AS least SELECT count() FROM matches WHERE goals >= least AND least = :n;

--- what looks like a parameter
-- :a string "v"
SELECT concat(':b', :a, ':c', '\':d', "e:f", '12:30', $$:g$$) FROM (SELECT 'n' AS `e:f`) # :h
/* :i */ -- :j
;

--- a number rounded as the caller wants
-- :places integer 3
SELECT round(toFloat64(2) / 3, :places);

--- a number in functions of every kind
-- :n integer 7
SELECT concat('n', :n, leftPad(toString(:n), 3, '0'), hex(:n), char(:n + 60));

--- a number in a text
-- :n number 4
SELECT concat(:n, ' goals');

--- a number with a fraction in a text
-- :n number 1e21
SELECT concat('', :n);

--- the greater of two numbers
-- :a integer 9
-- :b integer 10
SELECT greatest(:a, :b);

--- one of two numbers
-- :yes boolean true
-- :a number 1.5
-- :b number 2.5
SELECT CASE WHEN :yes THEN :a ELSE :b END;

--- one of two texts
-- :yes boolean false
-- :a string "a"
-- :b string null
SELECT if(:yes, :a, coalesce(:b, 'none'));

--- a part of a text from a place on
-- :from integer 3
SELECT substring('abcdef', :from);

--- an order that the caller chooses
-- :by string "pay"
SELECT groupConcat(',')(name) FROM (SELECT name FROM staff ORDER BY multiIf(:by = 'pay', toFloat64(pay), :by = 'id', toFloat64(id), 0) DESC, id);

--- a window's place
-- :n integer 2
SELECT max(second) FROM (SELECT lagInFrame(id, :n, 0) OVER (ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS second FROM staff);

--- a group that the caller chooses
-- :least integer 25
SELECT groupConcat(',')(team) FROM (SELECT toString(team) AS team FROM matches GROUP BY team HAVING sum(goals) > :least ORDER BY team);

--- what only some rows have
-- :n integer 2
SELECT count() FROM (SELECT id FROM matches QUALIFY row_number() OVER (PARTITION BY team ORDER BY id) <= :n);

--- a join with what is given
-- :team string "Ajax"
-- :n integer 5
SELECT count() FROM staff AS s INNER JOIN matches AS m ON s.id = m.goals AND m.team = :team WHERE m.id > :n;

--- the newest rows of what is given
-- :id integer 3
SELECT price FROM versions FINAL WHERE id = :id;

--- a view of what is given
-- :team string "Celtic"
SELECT sum(goals) FROM of_team(name = :team);

--- a row of parameters
-- :a integer 2
-- :b integer 1
SELECT name FROM staff WHERE (id, boss) = (:a, :b);

--- a list of parameters
-- :a integer 2
-- :b integer 40
SELECT arraySum([:a, :b]);

--- a map of parameters
-- :k string "it's"
-- :n integer 7
SELECT map(:k, :n)[:k];

--- a division by nothing, told as a text
-- :n integer 0
SELECT toString(1 / :n);

--- a text that is no number is nothing
-- :t string "12abc"
SELECT coalesce(toInt32OrNull(:t), toInt32OrZero(:t), -1);

--- a sum of 256 bits
-- :n integer 9223372036854775807
SELECT max(u256) - :n FROM numbers_of_all WHERE id = 4;

--- an exact number of 76 digits
-- :n integer 1
SELECT max(d256) / :n FROM numbers_of_all;

--- a large float of 32 bits
-- :id integer 2
SELECT f32 FROM numbers_of_all WHERE id = :id;

--- nothing in an answer of a number
-- :id integer 1000
SELECT maxOrNull(id) FROM staff WHERE id > :id;

--- a long text
-- :t string "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890"
SELECT concat(length(:t), hex(MD5(:t)));
