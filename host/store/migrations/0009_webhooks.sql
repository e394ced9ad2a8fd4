-- Webhooks, and the outbox of events on their way to them. Portable to SQLite and PostgreSQL.

-- What a company tells about itself.
ALTER TABLE companies ADD COLUMN website TEXT;
ALTER TABLE companies ADD COLUMN logo_url TEXT;
ALTER TABLE companies ADD COLUMN industry_id BIGINT;
ALTER TABLE companies ADD COLUMN country TEXT;
ALTER TABLE companies ADD COLUMN contact_email TEXT;

-- Below how many credits a buyer's balance is low; NULL: the default. It stands beside the balance that it is compared with, so that whoever
-- has locked the account to charge it knows both.
ALTER TABLE accounts ADD COLUMN low_credits BIGINT CHECK (low_credits >= 0);

-- Secrets are sealed, in hexadecimal; the former one signs too until its time is over. `event_types` is a JSON array, empty for all types.
-- `failing_since` is the first failure of an unbroken series, `failed_at` the last.
CREATE TABLE webhooks (
    id TEXT PRIMARY KEY,
    company_id TEXT NOT NULL REFERENCES companies (id),
    url TEXT NOT NULL,
    description TEXT,
    event_types TEXT NOT NULL,
    is_active SMALLINT NOT NULL CHECK (is_active IN (0, 1)),
    secret TEXT NOT NULL,
    former_secret TEXT,
    former_secret_until BIGINT,
    failing_since BIGINT,
    failed_at BIGINT,
    disabled_at BIGINT,
    disabled_reason TEXT CHECK (disabled_reason IN ('request', 'gone', 'failing')),
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    CHECK ((former_secret IS NULL) = (former_secret_until IS NULL)),
    CHECK ((is_active = 0) = (disabled_at IS NOT NULL)),
    CHECK ((disabled_at IS NULL) = (disabled_reason IS NULL))
);
CREATE INDEX webhooks_by_company ON webhooks (company_id, created_at);

-- One event for one webhook, written by the transaction that causes it. `body` is what is sent, the same at every attempt. Whoever
-- attempts one holds it until `lease_until` under `claimed_by`; a host that dies leaves both, and somebody else goes on. There is no foreign
-- key: a charge that writes an event must neither wait for nor fail by a webhook that is being deleted. What is left over goes when it is due.
CREATE TABLE webhook_deliveries (
    id TEXT PRIMARY KEY,
    webhook_id TEXT NOT NULL,
    event_type TEXT NOT NULL,
    body TEXT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('pending', 'delivered', 'failed')),
    attempts BIGINT NOT NULL,
    next_attempt_at BIGINT,
    claimed_by TEXT,
    lease_until BIGINT,
    last_attempt_at BIGINT,
    response_code BIGINT,
    error TEXT,
    delivered_at BIGINT,
    created_at BIGINT NOT NULL,
    CHECK ((status = 'pending') = (next_attempt_at IS NOT NULL)),
    CHECK ((status = 'delivered') = (delivered_at IS NOT NULL)),
    CHECK ((claimed_by IS NULL) = (lease_until IS NULL))
);
CREATE INDEX webhook_deliveries_due ON webhook_deliveries (next_attempt_at) WHERE status = 'pending';
CREATE INDEX webhook_deliveries_waiting ON webhook_deliveries (webhook_id) WHERE status = 'pending';
CREATE INDEX webhook_deliveries_by_webhook ON webhook_deliveries (webhook_id, created_at);
