-- Money in and out: top-ups, what payment providers told, payout methods, payouts. Portable to SQLite and PostgreSQL.

-- Payouts have a state between "payable" and "paid", so the books get an account and a type of transaction for it. A CHECK cannot be
-- changed on both stores in the same words, so both tables are made anew around their rows.
CREATE TABLE accounts_new (
    id TEXT PRIMARY KEY,
    kind TEXT NOT NULL CHECK (kind IN ('cash', 'buyer', 'seller_pending', 'seller_payable', 'seller_in_payout', 'platform_revenue', 'platform_promo')),
    company_id TEXT,
    balance_cents BIGINT NOT NULL DEFAULT 0,
    held_cents BIGINT NOT NULL DEFAULT 0,
    CHECK (held_cents >= 0),
    CHECK (kind <> 'buyer' OR balance_cents >= held_cents),
    CHECK (kind <> 'seller_in_payout' OR balance_cents >= 0)
);
INSERT INTO accounts_new (id, kind, company_id, balance_cents, held_cents)
SELECT id, kind, company_id, balance_cents, held_cents FROM accounts;
DROP TABLE accounts;
ALTER TABLE accounts_new RENAME TO accounts;
CREATE INDEX accounts_by_company ON accounts (company_id);

CREATE TABLE transactions_new (
    id TEXT PRIMARY KEY,
    type TEXT NOT NULL CHECK (type IN ('top_up', 'grant', 'charge', 'refund', 'maturity', 'payout', 'payout_paid', 'payout_return', 'adjustment')),
    company_id TEXT NOT NULL,
    seller_id TEXT,
    amount_credits BIGINT NOT NULL,
    amount_cents BIGINT NOT NULL CHECK (amount_cents > 0),
    balance_after_credits BIGINT,
    product_type TEXT,
    product_id TEXT,
    purchase_id TEXT,
    price_id TEXT,
    execution_id TEXT,
    api_key_id TEXT,
    request_id TEXT,
    reversal_of TEXT,
    external_id TEXT,
    description TEXT,
    created_at BIGINT NOT NULL
);
INSERT INTO transactions_new (id, type, company_id, seller_id, amount_credits, amount_cents, balance_after_credits, product_type, product_id,
                              purchase_id, price_id, execution_id, api_key_id, request_id, reversal_of, external_id, description, created_at)
SELECT id, type, company_id, seller_id, amount_credits, amount_cents, balance_after_credits, product_type, product_id,
       purchase_id, price_id, execution_id, api_key_id, request_id, reversal_of, external_id, description, created_at
FROM transactions;
DROP TABLE transactions;
ALTER TABLE transactions_new RENAME TO transactions;
CREATE INDEX transactions_by_company ON transactions (company_id, created_at);
CREATE INDEX transactions_by_seller ON transactions (seller_id, created_at);
CREATE UNIQUE INDEX transactions_by_reversal ON transactions (reversal_of) WHERE reversal_of IS NOT NULL;
CREATE UNIQUE INDEX transactions_by_external ON transactions (external_id) WHERE external_id IS NOT NULL;
CREATE INDEX transactions_of_refunds ON transactions (company_id, product_id) WHERE type = 'refund';

-- Credits that a company wants to buy. `provider_reference` is the provider's name for the payment (a Checkout session), `reference` what
-- proves that the money came (its event, or the line of a bank statement).
CREATE TABLE top_ups (
    id TEXT PRIMARY KEY,
    company_id TEXT NOT NULL,
    credits BIGINT NOT NULL CHECK (credits > 0),
    provider TEXT NOT NULL,
    payment_method TEXT,
    status TEXT NOT NULL CHECK (status IN ('pending', 'settled', 'failed')),
    provider_reference TEXT,
    checkout_url TEXT,
    failure_reason TEXT,
    reference TEXT,
    api_key_id TEXT,
    created_at BIGINT NOT NULL,
    settled_at BIGINT,
    CHECK ((status = 'settled') = (settled_at IS NOT NULL))
);
CREATE INDEX top_ups_by_company ON top_ups (company_id, created_at);

-- Events of payment providers that were acted upon. Providers deliver an event again and again until it is answered.
CREATE TABLE payment_events (
    provider TEXT NOT NULL,
    event_id TEXT NOT NULL,
    type TEXT NOT NULL,
    top_up_id TEXT NOT NULL,
    received_at BIGINT NOT NULL,
    PRIMARY KEY (provider, event_id)
);
CREATE INDEX payment_events_by_top_up ON payment_events (top_up_id);

-- Where a company wants its earnings. `destination` is sealed, in hexadecimal.
CREATE TABLE payout_methods (
    company_id TEXT PRIMARY KEY,
    type TEXT NOT NULL,
    account_holder TEXT NOT NULL,
    destination TEXT NOT NULL,
    destination_last4 TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
);

-- The method is copied: a payout goes where the method pointed when it was asked for.
CREATE TABLE payouts (
    id TEXT PRIMARY KEY,
    company_id TEXT NOT NULL,
    amount_cents BIGINT NOT NULL CHECK (amount_cents > 0),
    status TEXT NOT NULL CHECK (status IN ('requested', 'processing', 'paid', 'failed', 'cancelled')),
    type TEXT NOT NULL,
    account_holder TEXT NOT NULL,
    destination TEXT NOT NULL,
    destination_last4 TEXT NOT NULL,
    failure_reason TEXT,
    reference TEXT,
    api_key_id TEXT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    paid_at BIGINT,
    CHECK ((status = 'paid') = (paid_at IS NOT NULL))
);
CREATE INDEX payouts_by_company ON payouts (company_id, created_at);
CREATE INDEX payouts_by_status ON payouts (status, created_at);
