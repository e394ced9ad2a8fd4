-- Which runs of a seller's products are its newest. Portable to SQLite and PostgreSQL.
--
-- The runs themselves are in `executions`, which has no index by seller: each charge would pay for it.
CREATE TABLE recent_executions (
    seller_id TEXT NOT NULL,
    started_at BIGINT NOT NULL,
    execution_id TEXT NOT NULL,
    -- 0 or 1.
    failed BIGINT NOT NULL,
    PRIMARY KEY (seller_id, started_at, execution_id)
);
