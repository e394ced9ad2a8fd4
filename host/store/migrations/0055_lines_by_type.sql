-- What is rare among a company's charges is found by itself, in the order of its time. Portable to SQLite and PostgreSQL.

-- Top-ups, grants, payouts, and what became payable.
CREATE INDEX transactions_of_money ON transactions (company_id, created_at) WHERE type <> 'charge' AND type <> 'refund';
-- Who gives back much of what it sells makes many of these: they are no neighbours of the others. Those of sellers have an index since 0022.
CREATE INDEX transactions_of_buyers_refunds ON transactions (company_id, created_at) WHERE type = 'refund';
