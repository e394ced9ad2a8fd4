-- Why runs of a seller's products failed: the newest of each seller, for the seller to read. Portable to SQLite and PostgreSQL.

-- `class` is what is answered with, `reason` the kind of fault, `code` the connector's own word for it, `detail` the source's or the
-- connector's own text.
CREATE TABLE failed_executions (
    execution_id TEXT NOT NULL PRIMARY KEY,
    seller_id TEXT NOT NULL,
    company_id TEXT NOT NULL,
    product_type TEXT NOT NULL,
    product_id TEXT NOT NULL,
    request_id TEXT NOT NULL,
    class TEXT NOT NULL,
    reason TEXT,
    blame TEXT NOT NULL,
    code TEXT,
    source_code TEXT,
    message TEXT NOT NULL,
    detail TEXT,
    started_at BIGINT NOT NULL,
    duration_us BIGINT NOT NULL
);
CREATE INDEX failed_executions_by_seller ON failed_executions (seller_id, started_at, execution_id);
