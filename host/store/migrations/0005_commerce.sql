-- Prices, purchases and the answers kept for retried requests. Portable to SQLite and PostgreSQL.

-- History: a price that has begun is never changed, only ended. `product_id` is an asset or an endpoint.
CREATE TABLE prices (
    price_id               TEXT     NOT NULL PRIMARY KEY,
    company_id             TEXT     NOT NULL,
    product_id             TEXT     NOT NULL,
    price_credits          BIGINT   NOT NULL,
    price_cents            BIGINT   NOT NULL,
    discount_percent       BIGINT,
    original_price_credits BIGINT,
    effective_from         BIGINT   NOT NULL,
    effective_to           BIGINT,
    created_by             TEXT     NOT NULL,
    created_at             BIGINT   NOT NULL,
    updated_at             BIGINT   NOT NULL
);
CREATE INDEX prices_by_product ON prices (product_id, effective_from);

-- What a buyer accepted, snapshotted: later changes of price, terms or AI training do not reach back.
CREATE TABLE purchases (
    purchase_id          TEXT     NOT NULL PRIMARY KEY,
    company_id           TEXT     NOT NULL,
    seller_company_id    TEXT     NOT NULL,
    product_id           TEXT     NOT NULL,
    product_type         TEXT     NOT NULL,
    price_credits        BIGINT   NOT NULL,
    ai_training_allowed  SMALLINT NOT NULL,
    terms_version        TEXT     NOT NULL,
    accepted_by          TEXT     NOT NULL,
    accepted_at          BIGINT   NOT NULL,
    status               TEXT     NOT NULL,
    endpoint_key_id      TEXT,
    created_at           BIGINT   NOT NULL,
    UNIQUE (company_id, product_id)
);
CREATE INDEX purchases_by_product ON purchases (product_id);

-- One row per (company, route template, Idempotency-Key). `status` NULL: in flight until `expires_at`.
CREATE TABLE idempotency (
    company_id      TEXT   NOT NULL,
    route           TEXT   NOT NULL,
    idempotency_key TEXT   NOT NULL,
    fingerprint     TEXT   NOT NULL,
    ticket          TEXT   NOT NULL,
    status          BIGINT,
    location        TEXT,
    body            TEXT,
    created_at      BIGINT NOT NULL,
    expires_at      BIGINT NOT NULL,
    PRIMARY KEY (company_id, route, idempotency_key)
);
CREATE INDEX idempotency_by_expiry ON idempotency (expires_at);
