-- Who changed what. Lines are written by triggers, in the transaction of the change: see store/src/audit. Portable to SQLite and PostgreSQL.

-- One row while a transaction runs that somebody answers for; it is gone before the commit, so nobody else ever sees it.
CREATE TABLE audit_acting (
    act_id TEXT NOT NULL,
    at BIGINT NOT NULL,
    company_id TEXT,
    actor_company_id TEXT,
    actor TEXT,
    user_id TEXT,
    role SMALLINT,
    address TEXT NOT NULL,
    operation TEXT NOT NULL,
    method TEXT NOT NULL,
    path TEXT NOT NULL,
    request_id TEXT NOT NULL
);

-- One line for each row that a transaction changed. `company_id` is whose row it is; actor, user and role are NULL where nobody had to say who it is.
-- `before_values` and `after_values` are JSON objects: of a change the columns that differ, without secrets.
CREATE TABLE audit_log (
    act_id TEXT NOT NULL,
    line BIGINT NOT NULL,
    at BIGINT NOT NULL,
    company_id TEXT,
    actor_company_id TEXT,
    actor TEXT,
    user_id TEXT,
    role SMALLINT,
    address TEXT NOT NULL,
    operation TEXT NOT NULL,
    method TEXT NOT NULL,
    path TEXT NOT NULL,
    request_id TEXT NOT NULL,
    subject_type TEXT NOT NULL,
    subject_id TEXT NOT NULL,
    change TEXT NOT NULL CHECK (change IN ('created', 'changed', 'deleted')),
    before_values TEXT,
    after_values TEXT,
    PRIMARY KEY (act_id, line)
);
CREATE INDEX audit_log_by_company ON audit_log (company_id, act_id);
CREATE INDEX audit_log_by_actor ON audit_log (actor_company_id, act_id);
CREATE INDEX audit_log_by_time ON audit_log (at);
