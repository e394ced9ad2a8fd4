-- A connector that was taken off work, by whom nobody else may put it back, and why a version could not be put to work. Portable to SQLite
-- and PostgreSQL.

-- Present: no version of it is at work. `version` is the one that was.
ALTER TABLE connector_choices ADD COLUMN deactivated_at BIGINT;
-- By the platform's staff: its company cannot put it back.
ALTER TABLE connector_choices ADD COLUMN blocked SMALLINT NOT NULL DEFAULT 0;
ALTER TABLE connector_choices ADD COLUMN reason TEXT;

-- Why the last attempt to put this version to work failed.
ALTER TABLE connectors ADD COLUMN error TEXT;
