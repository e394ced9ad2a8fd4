-- What users marked to find again. Portable to SQLite and PostgreSQL.
CREATE TABLE favorites (
    id TEXT NOT NULL PRIMARY KEY,
    company_id TEXT NOT NULL REFERENCES companies (id),
    user_id TEXT NOT NULL REFERENCES users (id),
    product_type TEXT NOT NULL CHECK (product_type IN ('asset', 'endpoint')),
    product_id TEXT NOT NULL,
    category TEXT,
    note TEXT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    UNIQUE (user_id, product_id)
);
CREATE INDEX favorites_by_user ON favorites (user_id, created_at);
CREATE INDEX favorites_by_company ON favorites (company_id);
