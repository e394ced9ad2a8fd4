-- How many lines statements have is not counted again at each question. Portable to SQLite and PostgreSQL.

-- Lines of hours that are over, by company, by whether they are its own transactions or those that it earned by, and by the transactions' type:
-- of hours before the setting `lines_counted_until`. Follows from `transactions`, and is counted behind (store/src/statements/counted.rs).
CREATE TABLE counted_lines (
    company_id TEXT NOT NULL,
    earned SMALLINT NOT NULL CHECK (earned IN (0, 1)),
    type TEXT NOT NULL,
    hour BIGINT NOT NULL,
    lines BIGINT NOT NULL,
    PRIMARY KEY (company_id, earned, type, hour)
) /* SQLite: WITHOUT ROWID */;
