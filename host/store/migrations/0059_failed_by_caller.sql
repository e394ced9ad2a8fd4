-- A product's success rate is of what it could have answered. Portable to SQLite and PostgreSQL.

-- Of `failed`: those that were refused for what their caller sent. A buyer who calls with wrong values says nothing of the product.
ALTER TABLE usage_days ADD COLUMN failed_by_caller BIGINT NOT NULL DEFAULT 0;
