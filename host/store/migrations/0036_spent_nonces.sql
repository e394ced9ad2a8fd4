-- Nonces by which somebody was signed in: each is good once. Portable to SQLite and PostgreSQL.
CREATE TABLE spent_nonces (
    -- Of the identity provider's name and the nonce.
    digest TEXT NOT NULL PRIMARY KEY,
    -- No token with this nonce holds from here on.
    expires_at BIGINT NOT NULL
);
CREATE INDEX spent_nonces_by_end ON spent_nonces (expires_at);
