-- A price that ends gives way to the one before it. Portable to SQLite and PostgreSQL.

-- Until when a price was asked for, where that was said. `effective_to` is when it ends: earlier, where another one begins before.
ALTER TABLE prices ADD COLUMN ends_at BIGINT;
-- The price that this one is again, after one that held for a while. Nobody asked for such a one: it goes when it would not hold any more.
ALTER TABLE prices ADD COLUMN resumes TEXT;

-- What was written in one transaction: a temporary price, and behind it a copy of the one before it.
CREATE INDEX prices_written ON prices (product_id, created_at);

-- Such copies, as far as they may not have ended yet, where they last until another price begins, or for good. So what holds when stays as it was: where a
-- seller has given one an end of its own it was asked for, and so was one behind prices within prices.
-- What is copied may be a copy itself: `asked` has what all of them are copies of.
WITH RECURSIVE
copies (price_id, source) AS (
    SELECT c.price_id, MIN(f.price_id)
    FROM prices c
    JOIN (SELECT product_id, MAX(updated_at) AS written_at FROM prices GROUP BY product_id) l ON l.product_id = c.product_id
    JOIN prices t ON t.product_id = c.product_id AND t.created_at = c.created_at
    JOIN prices f ON f.product_id = c.product_id AND COALESCE(f.effective_to, 9223372036854775807) = t.effective_from
    WHERE c.effective_from > c.created_at
      AND COALESCE(c.effective_to, 9223372036854775807) > l.written_at
      AND COALESCE(t.effective_to, 9223372036854775807) = c.effective_from
      AND f.price_credits = c.price_credits
      AND f.price_cents = c.price_cents
      AND (c.effective_to IS NULL
           OR EXISTS (SELECT 1 FROM prices n WHERE n.product_id = c.product_id AND n.effective_from = c.effective_to))
    GROUP BY c.price_id
),
asked (price_id, source) AS (
    SELECT price_id, source FROM copies WHERE source NOT IN (SELECT price_id FROM copies)
    UNION ALL
    SELECT copies.price_id, asked.source FROM copies JOIN asked ON asked.price_id = copies.source
)
UPDATE prices
SET resumes = asked.source
FROM asked
WHERE asked.price_id = prices.price_id;

-- By their begin: only those that were asked for, so that whoever looks for what holds passes over what has ended (`prices_by_end`).
CREATE INDEX prices_asked ON prices (product_id, effective_from) WHERE resumes IS NULL;

-- A temporary price ends where the copy behind it begins, whatever has become of that one and of the time between them.
UPDATE prices
SET ends_at = c.effective_from
FROM prices c
WHERE c.product_id = prices.product_id AND c.created_at = prices.created_at AND c.effective_from > prices.effective_from;

-- What ends where no other one was asked for ends by itself.
UPDATE prices
SET ends_at = effective_to
WHERE effective_to IS NOT NULL
  AND NOT EXISTS (SELECT 1
                  FROM prices n
                  WHERE n.product_id = prices.product_id AND n.effective_from = prices.effective_to AND n.resumes IS NULL);

DROP INDEX prices_written;
