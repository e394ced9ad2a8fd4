-- Who of the platform's staff did something in a company is not the company's to know: that it was staff is. Portable to SQLite and PostgreSQL.

CREATE TABLE staff_ids (id TEXT PRIMARY KEY);

INSERT INTO staff_ids (id)
SELECT k.id FROM api_keys k JOIN companies c ON c.id = k.company_id WHERE c.is_platform = 1
UNION
SELECT u.id FROM users u JOIN companies c ON c.id = u.company_id WHERE c.is_platform = 1;

UPDATE api_keys
SET created_by = 'staff'
WHERE created_by IN (SELECT id FROM staff_ids) AND company_id NOT IN (SELECT id FROM companies WHERE is_platform = 1);

UPDATE api_keys
SET revoked_by = 'staff'
WHERE revoked_by IN (SELECT id FROM staff_ids) AND company_id NOT IN (SELECT id FROM companies WHERE is_platform = 1);

UPDATE prices
SET created_by = 'staff'
WHERE created_by IN (SELECT id FROM staff_ids) AND company_id NOT IN (SELECT id FROM companies WHERE is_platform = 1);

UPDATE purchases
SET accepted_by = 'staff'
WHERE accepted_by IN (SELECT id FROM staff_ids) AND company_id NOT IN (SELECT id FROM companies WHERE is_platform = 1);

UPDATE connectors
SET uploaded_by = 'staff'
WHERE uploaded_by IN (SELECT id FROM staff_ids) AND scope IN (SELECT id FROM companies WHERE is_platform = 0);

DROP TABLE staff_ids;
