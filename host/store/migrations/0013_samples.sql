-- When the rows were taken that an endpoint's preview shows: at its publication, or by a later test of what it had been changed to.
ALTER TABLE endpoints ADD COLUMN sampled_at BIGINT;
UPDATE endpoints SET sampled_at = published_at WHERE sample IS NOT NULL;
