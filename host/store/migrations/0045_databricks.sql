-- The engine of the bundled connector `databricks`. Portable to SQLite and PostgreSQL.
--
-- Where somebody has put a connector of that name to work before, its engine stays what it is called in connections.
INSERT INTO storage_engines (id, scope, slug, name, dialect, need, credential_types)
SELECT 11, 'platform', 'databricks', 'Databricks', 'mysql', 'http', '["API_KEY", "PASSWORD"]'
WHERE NOT EXISTS (SELECT id FROM storage_engines WHERE scope = 'platform' AND slug = 'databricks');
