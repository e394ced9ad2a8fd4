-- The engine of the bundled connector `trino`. Portable to SQLite and PostgreSQL.
--
-- Where somebody has put a connector of that name to work before, its engine stays what it is called in connections.
INSERT INTO storage_engines (id, scope, slug, name, dialect, need, credential_types)
SELECT 8, 'platform', 'trino', 'Trino', 'generic', 'http', '["PASSWORD", "API_KEY", "NONE"]'
WHERE NOT EXISTS (SELECT id FROM storage_engines WHERE scope = 'platform' AND slug = 'trino');
