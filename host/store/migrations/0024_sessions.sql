-- Who is signed in, and who may come in. Only digests of tokens are kept. Portable to SQLite and PostgreSQL.
CREATE TABLE sessions (
    id TEXT NOT NULL PRIMARY KEY,
    company_id TEXT NOT NULL REFERENCES companies (id),
    user_id TEXT NOT NULL REFERENCES users (id),
    digest TEXT NOT NULL UNIQUE,
    -- What let the user in: `invitation`, or the name of an identity provider.
    auth_provider TEXT NOT NULL,
    address TEXT NOT NULL,
    user_agent TEXT,
    created_at BIGINT NOT NULL,
    last_seen_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL
);
CREATE INDEX sessions_by_user ON sessions (user_id, last_seen_at);
CREATE INDEX sessions_by_company ON sessions (company_id);
CREATE INDEX sessions_by_end ON sessions (expires_at);

-- One for each user who has not come in yet; a new one replaces it.
CREATE TABLE invitations (
    user_id TEXT NOT NULL PRIMARY KEY REFERENCES users (id),
    company_id TEXT NOT NULL REFERENCES companies (id),
    digest TEXT NOT NULL UNIQUE,
    -- The link went to the user's address and to nobody else.
    is_mailed SMALLINT NOT NULL CHECK (is_mailed IN (0, 1)),
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL
);
CREATE INDEX invitations_by_company ON invitations (company_id);
