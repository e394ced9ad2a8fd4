-- Prices and retired handles are found by when they end. Portable to SQLite and PostgreSQL.

-- All that asks what a product costs passes over the prices that have ended, which may be thousands. A price without an end has the last instant.
-- There is no other index by product: SQLite would take one by `effective_from`, and go through all that have begun.
DROP INDEX prices_by_product;
CREATE INDEX prices_by_end ON prices (product_id, (COALESCE(effective_to, 9223372036854775807)), effective_from);
-- Where PostgreSQL joins many products with what they cost, it would rather read all prices that there ever were.
/* PostgreSQL: CREATE INDEX prices_not_ended ON prices ((COALESCE(effective_to, 9223372036854775807))); */

-- How many a company has is counted before one more is retired; those that are over are swept.
CREATE INDEX retired_handles_by_company ON retired_handles (company_id, expires_at);
CREATE INDEX retired_handles_by_expiry ON retired_handles (expires_at);
