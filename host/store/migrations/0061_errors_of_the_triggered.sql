-- An alert that has triggered goes on with that behind an error. Portable to SQLite and PostgreSQL.

-- Of one in the state `error`: whether it had triggered, and no answer has said since that this is over.
ALTER TABLE alerts ADD COLUMN was_triggered SMALLINT NOT NULL DEFAULT 0 CHECK (was_triggered IN (0, 1));

-- Of those that are in it now the newest change says what was before.
UPDATE alerts
SET was_triggered = 1
WHERE state = 'error'
  AND (SELECT e.previous_state FROM alert_events e WHERE e.alert_id = alerts.id ORDER BY e.occurred_at DESC, e.id DESC LIMIT 1) = 'triggered';
