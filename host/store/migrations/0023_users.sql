-- People who are invited, and what they tell of themselves. A user who is removed stays as a row, because others refer to it, without address.
-- Portable to SQLite and PostgreSQL.
ALTER TABLE users ADD COLUMN state TEXT NOT NULL DEFAULT 'active' CHECK (state IN ('invited', 'active', 'disabled'));
UPDATE users SET state = 'disabled' WHERE status = 'deactivated';
ALTER TABLE users DROP COLUMN status;
ALTER TABLE users RENAME COLUMN state TO status;
ALTER TABLE users ADD COLUMN email_verified SMALLINT NOT NULL DEFAULT 0 CHECK (email_verified IN (0, 1));
ALTER TABLE users ADD COLUMN avatar_url TEXT;
ALTER TABLE users ADD COLUMN job_function_id BIGINT;
-- By which provider the user signs in, and as whom there.
ALTER TABLE users ADD COLUMN auth_provider TEXT;
ALTER TABLE users ADD COLUMN auth_subject TEXT;
ALTER TABLE users ADD COLUMN last_login_at BIGINT;
ALTER TABLE users ADD COLUMN deleted_at BIGINT;
CREATE UNIQUE INDEX users_by_subject ON users (auth_provider, auth_subject);
CREATE INDEX api_keys_by_user ON api_keys (user_id);
