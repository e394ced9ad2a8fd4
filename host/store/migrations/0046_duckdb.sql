-- The engine of the bundled connector `duckdb`. Portable to SQLite and PostgreSQL.
--
-- Where somebody has put a connector of that name to work before, its engine stays what it is called in connections.
INSERT INTO storage_engines (id, scope, slug, name, dialect, need, credential_types)
SELECT 12, 'platform', 'duckdb', 'DuckDB', 'generic', 'http', '["API_KEY"]'
WHERE NOT EXISTS (SELECT id FROM storage_engines WHERE scope = 'platform' AND slug = 'duckdb');
