-- Mails that tell of alerts. Portable to SQLite and PostgreSQL.

ALTER TABLE alerts ADD COLUMN notify_by_mail SMALLINT NOT NULL DEFAULT 0 CHECK (notify_by_mail IN (0, 1));

-- NULL: nobody is to be told by mail. `mail_next_at` is NULL once that has ended well or not; whoever sends it moves it forward first.
ALTER TABLE alert_events ADD COLUMN mail_status TEXT CHECK (mail_status IN ('pending', 'sent', 'failed'));
ALTER TABLE alert_events ADD COLUMN mail_attempts BIGINT NOT NULL DEFAULT 0;
ALTER TABLE alert_events ADD COLUMN mail_next_at BIGINT;
CREATE INDEX alert_events_to_mail ON alert_events (mail_next_at) WHERE mail_next_at IS NOT NULL;
