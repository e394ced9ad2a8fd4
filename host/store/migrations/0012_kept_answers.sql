-- Kept answers are bounded: what each costs, and what the answers of each company cost together. The numbers are those of
-- store/src/idempotency.rs: 512 bytes a record and its answer, and as long as it is in flight the largest answer that is kept (65536).

ALTER TABLE idempotency ADD COLUMN bytes BIGINT NOT NULL DEFAULT 512;

-- The run of an answer that was too large to be kept, whose body is NULL.
ALTER TABLE idempotency ADD COLUMN execution_id TEXT;

UPDATE idempotency SET bytes = 512 + CASE WHEN status IS NULL THEN 65536 ELSE LENGTH(COALESCE(body, '')) END;

CREATE TABLE kept_answers (
    company_id TEXT PRIMARY KEY,
    records BIGINT NOT NULL,
    bytes BIGINT NOT NULL
);
INSERT INTO kept_answers (company_id, records, bytes)
SELECT company_id, COUNT(*), CAST(SUM(bytes) AS BIGINT) FROM idempotency GROUP BY company_id;

-- A top-up is found again by the retry of the request that began it, when the host died before it could answer.
ALTER TABLE top_ups ADD COLUMN idempotency_key TEXT;
CREATE INDEX top_ups_by_idempotency_key ON top_ups (company_id, idempotency_key);
