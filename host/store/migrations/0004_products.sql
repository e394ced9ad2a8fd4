-- What sellers sell: assets (one insight per execution) and endpoints (pages of rows).
-- Portable to SQLite and PostgreSQL. JSON is TEXT that only the application reads.

CREATE TABLE assets (
    id                TEXT     NOT NULL PRIMARY KEY,
    company_id        TEXT     NOT NULL,
    user_id           TEXT     NOT NULL,
    connection_id     TEXT     NOT NULL,
    asset_type        TEXT     NOT NULL,
    name              TEXT     NOT NULL,
    slug              TEXT     NOT NULL,
    description       TEXT     NOT NULL,
    category          TEXT,
    sport             TEXT,
    -- {"industry_ids": [], "use_case_ids": [], "tags": []}
    labels            TEXT     NOT NULL,
    -- 'sql', 'function' or 'path': how `source` is read.
    source_kind       TEXT     NOT NULL,
    source            TEXT     NOT NULL,
    parameters        TEXT     NOT NULL,
    result_type       TEXT     NOT NULL,
    unit              TEXT,
    visualization     TEXT,
    prediction        TEXT,
    privacy           TEXT,
    freshness_column  TEXT,
    timeout_ms        BIGINT   NOT NULL,
    allow_ai_training SMALLINT NOT NULL,
    status            TEXT     NOT NULL,
    -- The result that passed the test at publication: what a preview shows.
    sample            TEXT,
    saved_schema      TEXT,
    created_at        BIGINT   NOT NULL,
    updated_at        BIGINT   NOT NULL,
    published_at      BIGINT,
    UNIQUE (company_id, slug)
);
CREATE INDEX assets_by_company ON assets (company_id, created_at);
CREATE INDEX assets_by_connection ON assets (connection_id);
CREATE INDEX assets_by_publication ON assets (status, published_at);

CREATE TABLE endpoints (
    id                TEXT     NOT NULL PRIMARY KEY,
    company_id        TEXT     NOT NULL,
    user_id           TEXT     NOT NULL,
    connection_id     TEXT     NOT NULL,
    name              TEXT     NOT NULL,
    slug              TEXT     NOT NULL,
    description       TEXT     NOT NULL,
    category          TEXT,
    labels            TEXT     NOT NULL,
    -- Either a table or a statement.
    source_schema     TEXT,
    source_table      TEXT,
    sql_logic         TEXT,
    -- [{"name", "alias", "description"}]
    fields            TEXT     NOT NULL,
    -- [{"field", "descending"}]; empty: the primary key, once it is known.
    order_by          TEXT     NOT NULL,
    filters           TEXT     NOT NULL,
    default_limit     BIGINT   NOT NULL,
    max_limit         BIGINT   NOT NULL,
    timeout_ms        BIGINT   NOT NULL,
    allow_ai_training SMALLINT NOT NULL,
    status            TEXT     NOT NULL,
    -- What the last test learnt of the source: {"columns": [{"name", "type"}], "key": [..]}
    learned           TEXT,
    -- The rows that every preview shows.
    sample            TEXT,
    created_at        BIGINT   NOT NULL,
    updated_at        BIGINT   NOT NULL,
    published_at      BIGINT,
    UNIQUE (company_id, slug)
);
CREATE INDEX endpoints_by_company ON endpoints (company_id, created_at);
CREATE INDEX endpoints_by_connection ON endpoints (connection_id);
CREATE INDEX endpoints_by_publication ON endpoints (status, published_at);
