-- Fewer b-trees for every charge to touch. Portable to SQLite and PostgreSQL; SQLite also reads what the marked comment says.

-- Nothing reads single runs of a product; the counts are in usage_days.
DROP INDEX executions_by_product;

-- Entries are read with their transaction, or all together: one tree in the order in which they are written, instead of three (two keyed
-- by account, and SQLite's own rows).
CREATE TABLE entries_new (
    transaction_id TEXT NOT NULL,
    from_account TEXT NOT NULL,
    to_account TEXT NOT NULL,
    amount_cents BIGINT NOT NULL CHECK (amount_cents > 0),
    PRIMARY KEY (transaction_id, from_account, to_account),
    CHECK (from_account <> to_account)
) /* SQLite: WITHOUT ROWID */;
INSERT INTO entries_new (transaction_id, from_account, to_account, amount_cents)
SELECT transaction_id, from_account, to_account, amount_cents FROM entries ORDER BY transaction_id;
DROP TABLE entries;
ALTER TABLE entries_new RENAME TO entries;
