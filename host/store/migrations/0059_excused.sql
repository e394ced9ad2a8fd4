-- A product's success rate is of what it could have answered. Portable to SQLite and PostgreSQL.

-- Of `failed`: those that failed for what their caller sent, or for this host's own reasons, which say nothing of the product.
ALTER TABLE usage_days ADD COLUMN excused BIGINT NOT NULL DEFAULT 0;
