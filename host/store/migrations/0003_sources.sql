-- Where data comes from: the engines, the data connections, the companies' files, uploaded connectors.

-- The integers that the API calls `engine_id`. Stable for ever: an id is never given to another engine.
-- Ids below 1000 are the platform's own; engines that come with an uploaded connector start at 1000.
-- `scope` is `platform`, or the company whose private connector brought the engine.
CREATE TABLE storage_engines (
    id                BIGINT   NOT NULL PRIMARY KEY,
    scope             TEXT     NOT NULL,
    slug              TEXT     NOT NULL,
    name              TEXT     NOT NULL,
    dialect           TEXT     NOT NULL,
    need              TEXT     NOT NULL CHECK (need IN ('tcp', 'http', 'directory')),
    credential_types  TEXT     NOT NULL,
    UNIQUE (scope, slug)
);

INSERT INTO storage_engines (id, scope, slug, name, dialect, need, credential_types) VALUES
    (1, 'platform', 'postgres',   'PostgreSQL', 'postgres',   'tcp',       '["PASSWORD"]'),
    (2, 'platform', 'mysql',      'MySQL',      'mysql',      'tcp',       '["PASSWORD"]'),
    (3, 'platform', 'sqlserver',  'SQL Server', 'mssql',      'tcp',       '["PASSWORD"]'),
    (4, 'platform', 'sqlite',     'SQLite',     'sqlite',     'directory', '["NONE"]'),
    (5, 'platform', 'clickhouse', 'ClickHouse', 'clickhouse', 'http',      '["PASSWORD"]'),
    (6, 'platform', 'bigquery',   'BigQuery',   'bigquery',   'http',      '["SERVICE_ACCOUNT"]'),
    (7, 'platform', 'seller-api', 'Seller API', 'none',       'http',      '["API_KEY"]');

-- A deleted connection keeps its row, without credentials, for the archived products that name it.
CREATE TABLE connections (
    id                      TEXT     NOT NULL PRIMARY KEY,
    company_id              TEXT     NOT NULL REFERENCES companies (id),
    user_id                 TEXT     NOT NULL REFERENCES users (id),
    engine_id               BIGINT   NOT NULL REFERENCES storage_engines (id),
    name                    TEXT     NOT NULL,
    credential_type         TEXT     NOT NULL,
    credentials             BYTEA    NOT NULL,
    host                    TEXT,
    port                    BIGINT,
    database_name           TEXT,
    ssl_mode                TEXT,
    base_url                TEXT,
    ca_pem                  TEXT,
    cloud_provider_id       BIGINT,
    verified_usage_ability  SMALLINT NOT NULL,
    statement_timeout_ms    BIGINT   NOT NULL,
    -- Rises with every change that a session at the source must not outlive.
    revision                BIGINT   NOT NULL,
    status                  TEXT     NOT NULL CHECK (status IN ('unverified', 'active', 'failed')),
    last_tested_at          BIGINT,
    last_error              TEXT,
    created_at              BIGINT   NOT NULL,
    updated_at              BIGINT   NOT NULL,
    deleted_at              BIGINT
);

CREATE INDEX connections_by_company ON connections (company_id, created_at, id);

-- A company's file. Its bytes lie in the directory `<files>/<company_id>/<upload_id>/`, so that a
-- replacement is complete before anything names it.
CREATE TABLE files (
    company_id  TEXT    NOT NULL REFERENCES companies (id),
    name        TEXT    NOT NULL,
    upload_id   TEXT    NOT NULL UNIQUE,
    size_bytes  BIGINT  NOT NULL,
    sha256      TEXT    NOT NULL,
    created_at  BIGINT  NOT NULL,
    updated_at  BIGINT  NOT NULL,
    PRIMARY KEY (company_id, name)
);

-- Uploaded connectors. `scope` is `platform` or a company's id; bundled ones have no row.
CREATE TABLE connectors (
    scope        TEXT    NOT NULL,
    name         TEXT    NOT NULL,
    version      TEXT    NOT NULL,
    digest       TEXT    NOT NULL,
    size_bytes   BIGINT  NOT NULL,
    uploaded_by  TEXT    NOT NULL,
    created_at   BIGINT  NOT NULL,
    PRIMARY KEY (scope, name, version)
);

-- The component's bytes, in pieces: a commit of 64 MiB would hold up the store's single writer.
-- Written before the row in `connectors` that names the digest.
CREATE TABLE connector_chunks (
    digest      TEXT    NOT NULL,
    piece       BIGINT  NOT NULL,
    bytes       BYTEA   NOT NULL,
    created_at  BIGINT  NOT NULL,
    PRIMARY KEY (digest, piece)
);

-- Which version somebody chose, where that is not simply the bundled one.
CREATE TABLE connector_choices (
    scope             TEXT    NOT NULL,
    name              TEXT    NOT NULL,
    version           TEXT    NOT NULL,
    previous_version  TEXT,
    activated_at      BIGINT  NOT NULL,
    PRIMARY KEY (scope, name)
);
