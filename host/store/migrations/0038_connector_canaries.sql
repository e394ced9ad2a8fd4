-- Versions that are tried out on a share of the calls, one of a connector at a time. Portable to SQLite and PostgreSQL.

CREATE TABLE connector_canaries (
    scope           TEXT     NOT NULL,
    name            TEXT     NOT NULL,
    version         TEXT     NOT NULL,
    -- The version at work, which answers the rest. Where another one is at work, nothing is tried out.
    beside_version  TEXT     NOT NULL,
    share_percent   BIGINT   NOT NULL CHECK (share_percent BETWEEN 1 AND 99),
    -- Since when it has this share.
    since           BIGINT   NOT NULL,
    PRIMARY KEY (scope, name)
);
