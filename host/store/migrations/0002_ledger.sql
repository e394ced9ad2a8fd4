-- Money. Double entry, append only: an entry moves a positive amount from one account to another, so no entry can unbalance the books,
-- and the sum over all accounts is zero because every account starts at zero. Amounts are US cents; one credit is 50.

-- One row per account: the sum of its entries, kept up in the transaction that writes them.
-- cash and platform:promo are where money comes from, so they are zero or below; what buyers, sellers and the platform own is above.
-- held_cents is only used on a store that several hosts share; a host that has its store to itself keeps holds in memory.
CREATE TABLE accounts (
    id TEXT PRIMARY KEY,
    kind TEXT NOT NULL CHECK (kind IN ('cash', 'buyer', 'seller_pending', 'seller_payable', 'platform_revenue', 'platform_promo')),
    company_id TEXT,
    balance_cents BIGINT NOT NULL DEFAULT 0,
    held_cents BIGINT NOT NULL DEFAULT 0,
    CHECK (held_cents >= 0),
    CHECK (kind <> 'buyer' OR balance_cents >= held_cents)
);
CREATE INDEX accounts_by_company ON accounts (company_id);

-- One row per business event. company_id is whose statement it is on (the buyer of a charge); seller_id is who earned by it.
CREATE TABLE transactions (
    id TEXT PRIMARY KEY,
    type TEXT NOT NULL CHECK (type IN ('top_up', 'grant', 'charge', 'refund', 'maturity', 'payout', 'payout_return', 'adjustment')),
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
CREATE INDEX transactions_by_company ON transactions (company_id, created_at);
CREATE INDEX transactions_by_seller ON transactions (seller_id, created_at);
-- Nothing is reversed twice, and no event of a payment provider is booked twice.
CREATE UNIQUE INDEX transactions_by_reversal ON transactions (reversal_of) WHERE reversal_of IS NOT NULL;
CREATE UNIQUE INDEX transactions_by_external ON transactions (external_id) WHERE external_id IS NOT NULL;

CREATE TABLE entries (
    transaction_id TEXT NOT NULL,
    from_account TEXT NOT NULL,
    to_account TEXT NOT NULL,
    amount_cents BIGINT NOT NULL CHECK (amount_cents > 0),
    PRIMARY KEY (from_account, transaction_id, to_account),
    CHECK (from_account <> to_account)
);
CREATE INDEX entries_by_receiver ON entries (to_account, transaction_id);

-- Credits that are reserved for a run in flight. Used on a shared store only; a row is gone once it was posted or voided.
CREATE TABLE holds (
    id TEXT PRIMARY KEY,
    account_id TEXT NOT NULL,
    amount_cents BIGINT NOT NULL CHECK (amount_cents > 0),
    expires_at BIGINT NOT NULL,
    created_at BIGINT NOT NULL
);
CREATE INDEX holds_by_expiry ON holds (expires_at);

-- One row per run. Charged runs are all here; of free ones only as many as the recorder has room for (the counts below are complete).
CREATE TABLE executions (
    id TEXT PRIMARY KEY,
    company_id TEXT NOT NULL,
    seller_id TEXT NOT NULL,
    product_type TEXT NOT NULL,
    product_id TEXT NOT NULL,
    purchase_id TEXT,
    price_id TEXT,
    transaction_id TEXT,
    api_key_id TEXT,
    request_id TEXT,
    status TEXT NOT NULL,
    billing TEXT NOT NULL,
    error_code TEXT,
    blame TEXT,
    credits BIGINT NOT NULL,
    rows_returned BIGINT NOT NULL,
    bytes_returned BIGINT NOT NULL,
    started_at BIGINT NOT NULL,
    duration_us BIGINT NOT NULL
);
CREATE INDEX executions_by_product ON executions (product_id, started_at);

-- Runs per product, caller and day.
CREATE TABLE usage_days (
    day BIGINT NOT NULL,
    company_id TEXT NOT NULL,
    product_id TEXT NOT NULL,
    product_type TEXT NOT NULL,
    seller_id TEXT NOT NULL,
    succeeded BIGINT NOT NULL,
    failed BIGINT NOT NULL,
    credits BIGINT NOT NULL,
    rows_returned BIGINT NOT NULL,
    duration_us BIGINT NOT NULL,
    PRIMARY KEY (company_id, day, product_id)
);
CREATE INDEX usage_days_by_product ON usage_days (product_id, day);
CREATE INDEX usage_days_by_seller ON usage_days (seller_id, day);

