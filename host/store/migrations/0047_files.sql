-- The engine of the connector `files`, which is bundled with optimised builds. Portable to SQLite and PostgreSQL.
--
-- Where somebody has put a connector of that name to work before, its engine stays what it is called in connections.
INSERT INTO storage_engines (id, scope, slug, name, dialect, need, credential_types)
SELECT 13, 'platform', 'files', 'Parquet, CSV, JSON and Arrow files', 'postgres', 'directory', '["NONE"]'
WHERE NOT EXISTS (SELECT id FROM storage_engines WHERE scope = 'platform' AND slug = 'files');
