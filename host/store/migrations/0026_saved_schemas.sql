-- What a seller noted of the source behind an asset. Portable to SQLite and PostgreSQL.
CREATE TABLE saved_schemas (
    asset_id TEXT NOT NULL PRIMARY KEY,
    company_id TEXT NOT NULL REFERENCES companies (id),
    -- {"tables": [{"name", "fields": [..], ..}]}
    saved_schema TEXT NOT NULL,
    saved_at BIGINT NOT NULL
);
