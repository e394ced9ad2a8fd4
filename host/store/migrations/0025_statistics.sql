-- How many users marked a product. Portable to SQLite and PostgreSQL.
CREATE INDEX favorites_by_product ON favorites (product_id);

-- How much a company may use the API.
ALTER TABLE companies ADD COLUMN plan TEXT NOT NULL DEFAULT 'scale' CHECK (plan IN ('starter', 'growth', 'scale'));
