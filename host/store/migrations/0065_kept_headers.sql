-- What an answer says beside its body, where that is not in it: a line for each header. Portable to SQLite and PostgreSQL.

ALTER TABLE idempotency ADD COLUMN headers TEXT;
