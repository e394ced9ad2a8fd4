-- Alerts on assets' answers, and what became of them. Portable to SQLite and PostgreSQL.

-- `params` is a JSON object, `threshold` a JSON number or text, `webhook_ids` a JSON array, empty for all that subscribe. Below `revision` stands
-- what evaluations write: `last_value` is JSON, `history` a JSON array of numbers. `revision` counts changes of what is asked, so that the
-- result of an evaluation that began before one is left out. Whoever evaluates one holds it until `lease_until` under `claimed_by`; a host that dies
-- leaves both, and somebody else goes on. `next_check_at` is NULL while it is not active.
CREATE TABLE alerts (
    id TEXT NOT NULL PRIMARY KEY,
    company_id TEXT NOT NULL REFERENCES companies (id),
    user_id TEXT NOT NULL REFERENCES users (id),
    asset_id TEXT NOT NULL,
    name TEXT NOT NULL,
    params TEXT NOT NULL,
    operator TEXT NOT NULL,
    threshold TEXT,
    answer_field TEXT,
    check_interval_seconds BIGINT NOT NULL,
    consecutive_breaches BIGINT NOT NULL,
    rearm_seconds BIGINT NOT NULL,
    webhook_ids TEXT NOT NULL,
    max_credits_per_day BIGINT NOT NULL,
    is_active SMALLINT NOT NULL CHECK (is_active IN (0, 1)),
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    revision BIGINT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('unknown', 'ok', 'triggered', 'error')),
    breaches BIGINT NOT NULL,
    delays BIGINT NOT NULL,
    last_value TEXT,
    history TEXT NOT NULL,
    last_checked_at BIGINT,
    last_triggered_at BIGINT,
    last_error TEXT,
    spent_on BIGINT NOT NULL,
    spent_credits BIGINT NOT NULL,
    next_check_at BIGINT,
    claimed_by TEXT,
    lease_until BIGINT,
    CHECK ((is_active = 1) = (next_check_at IS NOT NULL)),
    CHECK ((claimed_by IS NULL) = (lease_until IS NULL))
);
CREATE INDEX alerts_due ON alerts (next_check_at) WHERE next_check_at IS NOT NULL;
CREATE INDEX alerts_by_company ON alerts (company_id, created_at);
CREATE INDEX alerts_by_user ON alerts (user_id, created_at);
CREATE INDEX alerts_by_asset ON alerts (asset_id, company_id);

-- Changes of state. `deliveries` is a JSON array of those that tell of it.
CREATE TABLE alert_events (
    id TEXT NOT NULL PRIMARY KEY,
    alert_id TEXT NOT NULL,
    state TEXT NOT NULL,
    previous_state TEXT NOT NULL,
    value TEXT,
    threshold TEXT,
    message TEXT,
    execution_id TEXT,
    deliveries TEXT NOT NULL,
    occurred_at BIGINT NOT NULL
);
CREATE INDEX alert_events_by_alert ON alert_events (alert_id, occurred_at);
