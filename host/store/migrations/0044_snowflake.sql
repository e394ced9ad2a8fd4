-- The engine of the bundled connector `snowflake`. Portable to SQLite and PostgreSQL.
--
-- Where somebody has put a connector of that name to work before, its engine stays what it is called in connections.
INSERT INTO storage_engines (id, scope, slug, name, dialect, need, credential_types)
SELECT 10, 'platform', 'snowflake', 'Snowflake', 'generic', 'http', '["SERVICE_ACCOUNT", "API_KEY"]'
WHERE NOT EXISTS (SELECT id FROM storage_engines WHERE scope = 'platform' AND slug = 'snowflake');
