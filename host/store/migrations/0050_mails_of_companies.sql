-- Mails of alerts that wait are found and counted by their company. Portable to SQLite and PostgreSQL.

-- The alert's company, of an event that is told by mail.
ALTER TABLE alert_events ADD COLUMN mail_company TEXT;
UPDATE alert_events
SET mail_company = (SELECT alerts.company_id FROM alerts WHERE alerts.id = alert_events.alert_id)
WHERE mail_next_at IS NOT NULL;
CREATE INDEX alert_events_mails_of ON alert_events (mail_company, mail_next_at, id) WHERE mail_next_at IS NOT NULL;
