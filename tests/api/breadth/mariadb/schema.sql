-- What the statements of this folder are asked of.

-- The server's own zone is another.
SET time_zone = '+00:00';
SET sql_mode = 'STRICT_TRANS_TABLES,ALLOW_INVALID_DATES';

CREATE TABLE matches (
    id INT PRIMARY KEY,
    team VARCHAR(20) NOT NULL,
    rival VARCHAR(20),
    goals SMALLINT,
    views BIGINT UNSIGNED NOT NULL,
    fee DECIMAL(12,2),
    ratio FLOAT,
    weight DOUBLE,
    played TIMESTAMP(6) NULL,
    shown DATETIME NOT NULL,
    day DATE NOT NULL,
    kick_off TIME NOT NULL,
    side ENUM('home', 'away', 'neutral') NOT NULL,
    tags SET('cup', 'final', 'rain'),
    code UUID,
    notes JSON,
    is_final BOOLEAN,
    INDEX matches_of (team, day)
);
INSERT INTO matches
SELECT seq,
    ELT(seq % 5 + 1, 'Ajax', 'Benfica', 'Celtic', 'Dynamo', 'Évian'),
    IF(seq % 7 > 0, ELT((seq + 2) % 5 + 1, 'Ajax', 'Benfica', 'Celtic', 'Dynamo', 'Évian'), NULL),
    IF(seq % 11 > 0, seq % 6, NULL),
    18446744073709551615 - seq,
    IF(seq % 13 > 0, seq * 1234.5678, NULL),
    seq / 7,
    IF(seq % 17 > 0, seq / 9e0, NULL),
    TIMESTAMP '2026-02-25 18:30:00.000001' + INTERVAL seq * 1033 MINUTE,
    TIMESTAMP '2026-02-25 20:15:30' + INTERVAL seq * 86401 SECOND,
    DATE '2026-02-25' + INTERVAL seq DAY,
    ADDTIME('12:00:00', SEC_TO_TIME(seq * 660)),
    ELT(seq % 3 + 1, 'home', 'away', 'neutral'),
    IF(seq % 6 > 0, seq % 8, NULL),
    IF(seq % 5 > 0, CONCAT_WS('-', '00000000', LPAD(seq, 4, '0'), '4000', '8000', '0123456789ab'), NULL),
    IF(seq % 8 > 0, JSON_OBJECT('n', seq, 'list', JSON_ARRAY(seq, seq * 2, NULL), 'deep', JSON_OBJECT('er', CONCAT('x', seq))), NULL),
    ELT(seq % 3 + 1, TRUE, FALSE)
FROM seq_1_to_60;

CREATE TABLE staff (id INT PRIMARY KEY, name VARCHAR(20) NOT NULL, boss INT, pay DECIMAL(9,2) NOT NULL);
INSERT INTO staff VALUES (1, 'Ann', NULL, 9000), (2, 'Bob', 1, 5000.5), (3, 'Cid', 1, 5000.50), (4, 'Dee', 2, 3000), (5, 'Eve', 2, 3000.01), (6, 'Fay', 3, 1234.56),
    (7, 'Gil', 6, 0);

-- A circle, and a way out of it.
CREATE TABLE roads (origin INT NOT NULL, target INT NOT NULL, km DECIMAL(10,3) NOT NULL);
INSERT INTO roads VALUES (1, 2, 1.5), (2, 3, 2.25), (3, 1, 0.125), (3, 4, 10), (4, 5, 1000);

-- The least and the greatest of each type, NULL, and nothing.
CREATE TABLE numbers (
    id INT PRIMARY KEY,
    tiny TINYINT, utiny TINYINT UNSIGNED, flag BOOLEAN, small SMALLINT, usmall SMALLINT UNSIGNED, medium MEDIUMINT, umedium MEDIUMINT UNSIGNED,
    i INT, u INT UNSIGNED, filled INT(8) ZEROFILL, big BIGINT, ubig BIGINT UNSIGNED, y YEAR,
    exact DECIMAL(65,30), whole DECIMAL(65,0), part DECIMAL(30,30), uexact DECIMAL(10,2) UNSIGNED, zexact DECIMAL(8,2) ZEROFILL,
    f FLOAT, d DOUBLE, fixed DOUBLE(12,3), ffixed FLOAT(7,2), bit1 BIT(1), bit9 BIT(9), bit63 BIT(63), bit64 BIT(64)
);
INSERT INTO numbers VALUES
    (1, -128, 0, -128, -32768, 0, -8388608, 0, -2147483648, 0, 0, -9223372036854775808, 0, 1901,
        -99999999999999999999999999999999999.999999999999999999999999999999, -99999999999999999999999999999999999999999999999999999999999999999,
        -0.999999999999999999999999999999, 0, 0, -3.402823466e38, -1.7976931348623157e308, -999999999.999, -99999.99, b'0', b'0', b'0', b'0'),
    (2, 127, 255, 127, 32767, 65535, 8388607, 16777215, 2147483647, 4294967295, 99999999, 9223372036854775807, 18446744073709551615, 2155,
        99999999999999999999999999999999999.999999999999999999999999999999, 99999999999999999999999999999999999999999999999999999999999999999,
        0.999999999999999999999999999999, 99999999.99, 999999.99, 3.402823466e38, 1.7976931348623157e308, 999999999.999, 99999.99, b'1', b'111111111',
        9223372036854775807, 18446744073709551615),
    (3, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
    (4, 0, 1, 2, 0, 1, 0, 1, 0, 1, 42, 0, 9223372036854775808, 0, 0.000000000000000000000000000001, 0, 0.000000000000000000000000000001, 0.01, 12.5,
        1.17549435e-38, 2.2250738585072014e-308, 0.001, 0.01, b'1', b'100000000', 4611686018427387904, 9223372036854775808),
    (5, 1, 2, 1, 1, 2, 1, 2, 1, 2, 12345678, 9007199254740993, 9007199254740993, 2026, 1.5, 15, 0.5, 1.5, 0.5, 0.1, 0.1, 1.5, 0.1, b'0', b'1', 1, 1),
    (6, 1, 2, 1, 1, 2, 1, 2, 1, 2, 1, 1, 1, 1999, -0.5, -15, -0.5, 0.5, 0.05, 16777217, 9007199254740993, -0.5, 16777.17, b'0', b'10', 2, 2),
    (7, 1, 2, 1, 1, 2, 1, 2, 1, 2, 1, 1, 1, 1970, 100, 1e3, 0, 100, 100, 123456789, 1e22, 100, 100, b'0', b'10', 2, 2),
    (8, 1, 2, 1, 1, 2, 1, 2, 1, 2, 1, 1, 1, 1970, 100, 1e3, 0, 100, 100, 3.14159274, 5e-324, 100, 100, b'0', b'10', 2, 2);

CREATE TABLE times (id INT PRIMARY KEY, d DATE, t TIME, t3 TIME(3), t6 TIME(6), dt DATETIME, dt3 DATETIME(3), dt6 DATETIME(6), s TIMESTAMP NULL, s6 TIMESTAMP(6) NULL);
INSERT INTO times VALUES
    (1, '0001-01-01', '-838:59:59', '-838:59:59.999', '-838:59:59.999999', '0001-01-01 00:00:00', '0001-01-01 00:00:00.001', '0001-01-01 00:00:00.000001',
        '1970-01-01 00:00:01', '1970-01-01 00:00:00.000001'),
    (2, '9999-12-31', '838:59:59', '838:59:59.999', '838:59:59.999999', '9999-12-31 23:59:59', '9999-12-31 23:59:59.999', '9999-12-31 23:59:59.999999',
        '2038-01-19 03:14:07', '2038-01-19 03:14:07.999999'),
    (3, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
    (4, '0000-00-00', '00:00:00', '00:00:00', '00:00:00', '0000-00-00', '0000-00-00', '0000-00-00', '0000-00-00', '0000-00-00'),
    (5, '2026-02-31', '24:00:00', '-00:00:00.001', '-00:00:00.000001', '2026-02-31 10:00:00', '2026-00-01 10:00:00', '2026-01-00 10:00:00.5',
        '2026-07-01 12:00:00', '2026-07-01 12:00:00.5'),
    (6, '2024-02-29', '100:30:15', '23:59:59.5', '12:00:00.000001', '2024-02-29 23:59:59', '1969-12-31 23:59:59.999', '1969-12-31 23:59:59.999999',
        '2024-02-29 00:00:00', '2000-01-01 00:00:00'),
    (7, '0000-01-01', '-00:00:01', '-25:00:00', '25:00:00', '0000-01-01 10:00:00', '1000-01-01 00:00:00', '1582-10-10 00:00:00', '2026-03-29 01:30:00',
        '2026-10-25 01:30:00.123456');

CREATE TABLE texts (
    id INT PRIMARY KEY, v VARCHAR(100), c CHAR(8), latin VARCHAR(20) CHARACTER SET latin1, narrow VARCHAR(20) CHARACTER SET utf8mb3,
    wide VARCHAR(20) CHARACTER SET ucs2, t TEXT, exact_t TEXT COLLATE utf8mb4_bin, e ENUM('', 'a', 'bé', 'NULL'), s SET('x', 'y', 'é'), j JSON,
    raw VARBINARY(8), padded BINARY(4), b BLOB, code UUID, net INET6, old_net INET4, place POINT
);
INSERT INTO texts VALUES
    (1, '', '', '', '', '', '', '', '', '', '{}', '', '', '', '00000000-0000-0000-0000-000000000000', '::', '0.0.0.0', POINT(0, 0)),
    (2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
    (3, 'NULL', 'NULL', 'NULL', 'NULL', 'NULL', 'NULL', 'NULL', 'NULL', 'x', 'null', 'NULL', 'NULL', 'NULL', 'ffffffff-ffff-ffff-ffff-ffffffffffff',
        'ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff', '255.255.255.255', POINT(-1.5, 1e300)),
    (4, ' a ', ' a ', ' a ', ' a ', ' a ', ' a ', ' a ', 'a', 'x,y,é', '[1, 2.50, "a"]', x'0001', x'0001', x'000102ff', '123e4567-e89b-12d3-a456-426614174000',
        '::ffff:10.0.0.1', '10.0.0.1', NULL),
    (5, 'a,"b"', 'a,"b"', 'größe', 'größe', '漢字', 'two\nlines', 'three\r\nlines\r', 'bé', 'y', '{"b": [1, null], "a": "\\u00e9"}', x'ff', x'ff', x'ff', NULL,
        '2001:db8::ff00:42:8329', NULL, NULL),
    (6, 'größe 漢字 🦀', '🦀', 'ÿ', '漢字', 'é', '\ttab\\', 'a''b', 2, 5, '"text"', 'text', 'text', REPEAT('x', 300), NULL, NULL, NULL, NULL),
    (7, 'É', 'É', 'É', 'É', 'É', 'É', 'é', 'a', 'é', '1', '&<>', '&<>', ']]>', NULL, NULL, NULL, NULL),
    (8, '&amp;<b>', '\\N', '0x41', '''', '`', REPEAT('é', 3000), 'x\\0y', 'a', '', 'true', x'00', x'00', x'00', NULL, NULL, NULL, NULL);

CREATE TABLE `Odd names` (`Id` INT PRIMARY KEY, `a, b` TEXT, `say "hi"` TEXT, `größe` DECIMAL(5,2), `select` BOOLEAN, `it``s` INT, `<a&b>` INT);
INSERT INTO `Odd names` VALUES (1, 'comma', 'quote', 1.80, TRUE, 1, 2), (2, NULL, '', NULL, FALSE, NULL, NULL);

CREATE TABLE vacant (id INT, v TEXT, n DECIMAL(10,2), shown DATETIME, f DOUBLE, b BLOB);

CREATE TABLE made (id INT PRIMARY KEY, n INT NOT NULL, twice INT AS (n * 2) VIRTUAL, thrice DECIMAL(10,1) AS (n * 3.5) STORED, hidden INT INVISIBLE DEFAULT 7);
INSERT INTO made (id, n) VALUES (1, 10), (2, -3);

CREATE TABLE prices (id INT, price DECIMAL(6,2), valid_from DATE, valid_to DATE, PERIOD FOR valid (valid_from, valid_to));
INSERT INTO prices VALUES (1, 9.99, '2026-01-01', '2026-02-01'), (1, 10.49, '2026-02-01', '2027-01-01');

CREATE TABLE versions (id INT PRIMARY KEY, v INT) WITH SYSTEM VERSIONING;
INSERT INTO versions VALUES (1, 10), (2, 20);

CREATE TABLE parts (id INT NOT NULL, n INT) PARTITION BY RANGE (id) (PARTITION low VALUES LESS THAN (10), PARTITION high VALUES LESS THAN MAXVALUE);
INSERT INTO parts SELECT seq, seq * seq FROM seq_1_to_20;

CREATE TABLE words (id INT PRIMARY KEY, body TEXT NOT NULL, FULLTEXT (body));
INSERT INTO words VALUES (1, 'The quick brown cats were running after lazy dogs'), (2, 'A dog sleeps'), (3, 'Rain and rain again');

CREATE VIEW totals AS SELECT team, SUM(goals) AS goals FROM matches GROUP BY team;

CREATE SEQUENCE tickets START WITH 100;

DELIMITER //
CREATE FUNCTION doubled(n INT) RETURNS INT DETERMINISTIC RETURN n * 2 //
CREATE FUNCTION writes() RETURNS INT MODIFIES SQL DATA BEGIN DELETE FROM staff WHERE id = 7; RETURN 1; END //
CREATE FUNCTION complains() RETURNS INT DETERMINISTIC BEGIN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'closed on sundays'; RETURN 1; END //
CREATE FUNCTION counted() RETURNS INT READS SQL DATA BEGIN DECLARE n INT; SELECT COUNT(*) INTO n FROM staff; RETURN n; END //
CREATE PROCEDURE clears() BEGIN DELETE FROM staff; END //
DELIMITER ;
