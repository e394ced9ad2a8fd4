-- A seller's refunds are rare, and deducted wherever its sales are shown. Portable to SQLite and PostgreSQL.
CREATE INDEX transactions_of_sellers_refunds ON transactions (seller_id, created_at) WHERE type = 'refund';
