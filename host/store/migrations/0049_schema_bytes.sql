-- What a company has saved is counted when it saves one more. Portable to SQLite and PostgreSQL.
ALTER TABLE saved_schemas ADD COLUMN bytes BIGINT NOT NULL DEFAULT 0;
UPDATE saved_schemas SET bytes = LENGTH(saved_schema);
CREATE INDEX saved_schemas_of ON saved_schemas (company_id, bytes);
