-- Where posts are published besides, and what became of them there. Portable to SQLite and PostgreSQL.

-- `scope` is whose publisher serves the platform, as engines have it. `config` is a JSON object of texts, `credentials` one that is sealed.
-- `revision` counts changes of what a session depends on.
CREATE TABLE integrations (
    id TEXT NOT NULL PRIMARY KEY,
    company_id TEXT NOT NULL REFERENCES companies (id),
    user_id TEXT NOT NULL REFERENCES users (id),
    platform TEXT NOT NULL,
    scope TEXT NOT NULL,
    name TEXT NOT NULL,
    base_url TEXT NOT NULL,
    config TEXT NOT NULL,
    credentials TEXT NOT NULL,
    revision BIGINT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('untested', 'active', 'failed')),
    last_tested_at BIGINT,
    last_error TEXT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
);
CREATE INDEX integrations_by_company ON integrations (company_id, created_at);

-- One row of a post at an integration, however often it is published. `requests` counts how often somebody has asked for it, so that the result
-- of an attempt that began before the last time does not end it. `platform` stays when the integration is deleted. Whoever attempts one holds it
-- until `lease_until` under `claimed_by`; a host that dies leaves both, and somebody else goes on.
CREATE TABLE publications (
    id TEXT NOT NULL PRIMARY KEY,
    company_id TEXT NOT NULL REFERENCES companies (id),
    post_id TEXT NOT NULL,
    integration_id TEXT NOT NULL,
    user_id TEXT NOT NULL,
    platform TEXT NOT NULL,
    requests BIGINT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('pending', 'retrying', 'published', 'failed', 'given_up')),
    attempts BIGINT NOT NULL,
    next_attempt_at BIGINT,
    last_attempt_at BIGINT,
    last_error TEXT,
    remote_id TEXT,
    url TEXT,
    published_at BIGINT,
    claimed_by TEXT,
    lease_until BIGINT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    UNIQUE (post_id, integration_id),
    CHECK ((state IN ('pending', 'retrying')) = (next_attempt_at IS NOT NULL)),
    CHECK ((claimed_by IS NULL) = (lease_until IS NULL))
);
CREATE INDEX publications_due ON publications (next_attempt_at) WHERE next_attempt_at IS NOT NULL;
CREATE INDEX publications_by_company ON publications (company_id, created_at);
