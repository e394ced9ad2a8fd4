-- What a company's stored connector says about itself (JSON), so that versions can be listed which no host has loaded. NULL: stored before
-- this was kept.
ALTER TABLE connectors ADD COLUMN described TEXT;

-- The bytes of one component are counted and deleted by its digest.
CREATE INDEX connectors_by_digest ON connectors (digest);
