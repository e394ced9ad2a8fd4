-- Why staff has suspended a company, or ended that: told in its audit log. Portable to SQLite and PostgreSQL.

ALTER TABLE companies ADD COLUMN status_reason TEXT;
