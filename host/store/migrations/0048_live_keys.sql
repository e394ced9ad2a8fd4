-- Keys that were not deactivated: whoever makes another one counts them.
CREATE INDEX api_keys_live ON api_keys (company_id, expires_at) WHERE deactivated_at IS NULL;
