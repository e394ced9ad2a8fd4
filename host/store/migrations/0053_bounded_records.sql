-- What a company has in the audit log, and what is counted of its requests, is bounded. Portable to SQLite and PostgreSQL.

-- What a line takes: its values, and what it costs beside them (`LINE_BYTES` in store/src/audit/triggers.rs).
ALTER TABLE audit_log ADD COLUMN bytes BIGINT NOT NULL DEFAULT 0;
UPDATE audit_log
SET bytes = 1024 + COALESCE(OCTET_LENGTH(before_values), 0) + COALESCE(OCTET_LENGTH(after_values), 0);
DROP INDEX audit_log_by_company;
DROP INDEX audit_log_by_actor;
DROP INDEX audit_log_by_time;
-- By these alone a page is found, however deep, and what a company has is added up.
CREATE INDEX audit_log_of_company ON audit_log (company_id, at, act_id, line, bytes);
CREATE INDEX audit_log_elsewhere ON audit_log (actor_company_id, at, act_id, line, company_id)
WHERE company_id IS NULL OR company_id <> actor_company_id;
CREATE INDEX audit_log_by_time ON audit_log (at, company_id);

-- Requests per company, hour, key (or user) and route prefix. `hour` is a day's first for all of its hours once these are not kept any more.
ALTER TABLE key_usage RENAME TO former_key_usage;
CREATE TABLE key_usage (
    company_id TEXT NOT NULL,
    hour BIGINT NOT NULL,
    key_id TEXT NOT NULL,
    route TEXT NOT NULL,
    requests BIGINT NOT NULL,
    failed BIGINT NOT NULL,
    PRIMARY KEY (company_id, hour, key_id, route)
) /* SQLite: WITHOUT ROWID */;
INSERT INTO key_usage (company_id, hour, key_id, route, requests, failed)
SELECT a.company_id, u.hour, u.key_id, u.route, u.requests, u.failed
FROM former_key_usage u
JOIN (SELECT id, company_id FROM api_keys
      UNION ALL
      SELECT id, company_id FROM users) a ON a.id = u.key_id;
DROP TABLE former_key_usage;
CREATE INDEX key_usage_of_key ON key_usage (key_id, hour);
-- Those that are no day yet.
CREATE INDEX key_usage_hours ON key_usage (hour) WHERE hour % 86400000000 <> 0;

-- Requests of a company in a UTC month, which is its first midnight: what its plan is held against.
CREATE TABLE company_months (
    company_id TEXT NOT NULL,
    month BIGINT NOT NULL,
    requests BIGINT NOT NULL,
    PRIMARY KEY (company_id, month)
) /* SQLite: WITHOUT ROWID */;
INSERT INTO company_months (company_id, month, requests)
SELECT company_id,
       /* SQLite: CAST(STRFTIME('%s', hour / 1000000, 'unixepoch', 'start of month') AS BIGINT) */
       /* PostgreSQL: CAST(EXTRACT(EPOCH FROM DATE_TRUNC('month', TO_TIMESTAMP(hour / 1000000) AT TIME ZONE 'UTC')) AS BIGINT) */
       * 1000000,
       CAST(SUM(requests) AS BIGINT)
FROM key_usage
GROUP BY 1, 2;
