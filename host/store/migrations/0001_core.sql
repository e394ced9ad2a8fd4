-- Who there is: companies, people, keys; and what the installation itself remembers.
-- House dialect: ids TEXT, times BIGINT microseconds, flags SMALLINT, JSON TEXT, money BIGINT.

CREATE TABLE companies (
    id TEXT PRIMARY KEY,
    handle TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL,
    description TEXT,
    status TEXT NOT NULL CHECK (status IN ('active', 'suspended')),
    is_platform SMALLINT NOT NULL CHECK (is_platform IN (0, 1)),
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
);

-- Handles that a company gave up keep routing to it for a while.
CREATE TABLE retired_handles (
    handle TEXT PRIMARY KEY,
    company_id TEXT NOT NULL REFERENCES companies (id),
    expires_at BIGINT NOT NULL
);

CREATE TABLE users (
    id TEXT PRIMARY KEY,
    company_id TEXT NOT NULL REFERENCES companies (id),
    email TEXT UNIQUE,
    name TEXT NOT NULL,
    role SMALLINT NOT NULL CHECK (role BETWEEN 1 AND 5),
    status TEXT NOT NULL CHECK (status IN ('active', 'deactivated')),
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
);
CREATE INDEX users_by_company ON users (company_id, created_at);

-- Analytics and endpoint keys. Only the digest of a secret is kept.
-- A key is deactivated from deactivated_at on, which lies in the future while a rotated key is in its grace period.
CREATE TABLE api_keys (
    id TEXT PRIMARY KEY,
    company_id TEXT NOT NULL REFERENCES companies (id),
    user_id TEXT REFERENCES users (id),
    key_type TEXT NOT NULL CHECK (key_type IN ('analytics', 'endpoint')),
    endpoint_id TEXT,
    purchase_id TEXT,
    name TEXT NOT NULL,
    description TEXT,
    digest TEXT NOT NULL UNIQUE,
    last4 TEXT NOT NULL,
    role SMALLINT NOT NULL CHECK (role BETWEEN 1 AND 5),
    permissions SMALLINT NOT NULL CHECK (permissions BETWEEN 1 AND 3),
    rate_limit BIGINT NOT NULL CHECK (rate_limit > 0),
    created_by TEXT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    expires_at BIGINT,
    deactivated_at BIGINT,
    revoked_by TEXT,
    revocation_reason TEXT,
    reason_code TEXT,
    first_used_at BIGINT,
    last_used_at BIGINT,
    usage_count BIGINT NOT NULL DEFAULT 0,
    failed_count BIGINT NOT NULL DEFAULT 0,
    CHECK ((key_type = 'endpoint') = (endpoint_id IS NOT NULL))
);
CREATE INDEX api_keys_by_company ON api_keys (company_id, created_at);
CREATE INDEX api_keys_by_endpoint ON api_keys (endpoint_id, created_at);

-- Requests per key, hour and route prefix.
CREATE TABLE key_usage (
    key_id TEXT NOT NULL,
    hour BIGINT NOT NULL,
    route TEXT NOT NULL,
    requests BIGINT NOT NULL,
    failed BIGINT NOT NULL,
    PRIMARY KEY (key_id, hour, route)
);

-- What the installation remembers about itself: ids of the platform company, versions of terms.
CREATE TABLE settings (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL
);
