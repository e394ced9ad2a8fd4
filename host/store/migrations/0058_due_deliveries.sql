-- What is due is found webhook by webhook, however much waits for one of them (store/src/deliveries.rs). Portable to SQLite and PostgreSQL.

-- Which webhooks have any, from the index alone …
DROP INDEX webhook_deliveries_due;
CREATE INDEX webhook_deliveries_due ON webhook_deliveries (next_attempt_at, webhook_id) WHERE status = 'pending';
-- … and of each the most overdue ones in their order.
DROP INDEX webhook_deliveries_waiting;
CREATE INDEX webhook_deliveries_waiting ON webhook_deliveries (webhook_id, next_attempt_at, id) WHERE status = 'pending';
