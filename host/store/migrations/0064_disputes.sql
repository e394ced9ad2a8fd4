-- Payments that their payer has had taken back at the provider, for now or for good. Portable to SQLite and PostgreSQL.

-- A provider's payments that are known: of which a top-up was settled, or of which a dispute was told before that. Whoever writes one, or acts upon
-- its disputes, writes this row first: two that tell of one payment at once are one after the other.
CREATE TABLE payments (
    provider TEXT NOT NULL,
    payment_id TEXT NOT NULL,
    top_up_id TEXT,
    PRIMARY KEY (provider, payment_id)
);

-- What follows from one is in the books, under its name.
CREATE TABLE disputes (
    provider TEXT NOT NULL,
    dispute_id TEXT NOT NULL,
    payment_id TEXT NOT NULL,
    amount_cents BIGINT NOT NULL CHECK (amount_cents > 0),
    is_won SMALLINT NOT NULL CHECK (is_won IN (0, 1)),
    received_at BIGINT NOT NULL,
    PRIMARY KEY (provider, dispute_id)
);
CREATE INDEX disputes_by_payment ON disputes (provider, payment_id);
