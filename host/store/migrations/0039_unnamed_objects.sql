-- Objects in an object store that no file names: not yet, or not any more. Whoever writes one adds its row before, and takes it away in the
-- transaction in which a file names it; so an object that is left over, by whatever, is known. From `due_at` on it is deleted. Portable to
-- SQLite and PostgreSQL.
CREATE TABLE unnamed_objects (
    upload_id TEXT NOT NULL PRIMARY KEY,
    company_id TEXT NOT NULL,
    due_at BIGINT NOT NULL,
    -- Of deleting it.
    attempts BIGINT NOT NULL,
    claimed_by TEXT,
    lease_until BIGINT,
    CHECK ((claimed_by IS NULL) = (lease_until IS NULL))
);
CREATE INDEX unnamed_objects_due ON unnamed_objects (due_at);
