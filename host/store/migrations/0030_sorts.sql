-- Orders that callers of an endpoint may ask for: [{"name", "order_by"}]. Portable to SQLite and PostgreSQL.
ALTER TABLE endpoint_details ADD COLUMN sorts TEXT NOT NULL DEFAULT '[]';
