-- A price that ends gives way to the one before it. Portable to SQLite and PostgreSQL.

-- Until when a price was asked for, where that was said. `effective_to` is when it ends: earlier, where another one begins before.
ALTER TABLE prices ADD COLUMN ends_at BIGINT;
-- The price that this one is again, after one that held for a while. Nobody asked for such a one: it goes when it would not hold any more.
ALTER TABLE prices ADD COLUMN resumes TEXT;

-- Those that were written behind a temporary price, in its transaction, as copies of the price before it, and last until another one begins.
-- Others, behind prices within prices, stay what they are: prices that were asked for.
UPDATE prices
SET resumes = (SELECT MIN(f.price_id)
               FROM prices t
               JOIN prices f ON f.product_id = t.product_id AND COALESCE(f.effective_to, 9223372036854775807) = t.effective_from
               WHERE t.product_id = prices.product_id
                 AND COALESCE(t.effective_to, 9223372036854775807) = prices.effective_from
                 AND t.created_at = prices.created_at
                 AND f.price_credits = prices.price_credits
                 AND f.price_cents = prices.price_cents)
WHERE effective_to IS NULL AND effective_from > created_at;

-- By their begin: only those that were asked for, so that whoever looks for what holds passes over what has ended (`prices_by_end`).
CREATE INDEX prices_asked ON prices (product_id, effective_from) WHERE resumes IS NULL;

-- What ends where no other one was asked for ends by itself.
UPDATE prices
SET ends_at = effective_to
WHERE effective_to IS NOT NULL
  AND NOT EXISTS (SELECT 1
                  FROM prices n
                  WHERE n.product_id = prices.product_id AND n.effective_from = prices.effective_to AND n.resumes IS NULL);
