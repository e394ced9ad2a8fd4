-- An address is its user's within the company, and in all companies once somebody has shown that it is theirs. Portable to SQLite and PostgreSQL.

-- SQLite does not take UNIQUE off a column: the address moves to a new one, and the former one stays, empty.
ALTER TABLE users RENAME COLUMN email TO former_email;
ALTER TABLE users ADD COLUMN email TEXT;
UPDATE users SET email = former_email, former_email = NULL WHERE former_email IS NOT NULL;
CREATE UNIQUE INDEX users_by_email ON users (email, company_id);
CREATE UNIQUE INDEX users_by_proven_email ON users (email) WHERE email_verified = 1;
