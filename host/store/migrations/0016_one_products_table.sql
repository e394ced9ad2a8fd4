-- What assets and endpoints have in common is in one table, the details of each beside it. A product keeps its id, and all that refers to it.
-- `saved_schema` of assets was never written.

CREATE TABLE products (
    id                TEXT     NOT NULL PRIMARY KEY,
    -- 'asset' or 'endpoint': where its details are.
    product_type      TEXT     NOT NULL,
    company_id        TEXT     NOT NULL,
    user_id           TEXT     NOT NULL,
    connection_id     TEXT     NOT NULL,
    name              TEXT     NOT NULL,
    slug              TEXT     NOT NULL,
    description       TEXT     NOT NULL,
    category          TEXT,
    -- {"industry_ids": [], "use_case_ids": [], "tags": []}
    labels            TEXT     NOT NULL,
    timeout_ms        BIGINT   NOT NULL,
    allow_ai_training SMALLINT NOT NULL,
    status            TEXT     NOT NULL,
    -- What the last test learnt of the source of an endpoint: {"columns": [{"name", "type"}], "key": [..]}
    learned           TEXT,
    -- What a preview shows, of a test of what the product is now, and when that was.
    sample            TEXT,
    sampled_at        BIGINT,
    created_at        BIGINT   NOT NULL,
    updated_at        BIGINT   NOT NULL,
    published_at      BIGINT,
    UNIQUE (company_id, product_type, slug)
);

CREATE TABLE asset_details (
    id                TEXT     NOT NULL PRIMARY KEY,
    asset_type        TEXT     NOT NULL,
    sport             TEXT,
    -- 'sql', 'function' or 'path': how `source` is read.
    source_kind       TEXT     NOT NULL,
    source            TEXT     NOT NULL,
    parameters        TEXT     NOT NULL,
    result_type       TEXT     NOT NULL,
    unit              TEXT,
    visualization     TEXT,
    prediction        TEXT,
    privacy           TEXT,
    freshness_column  TEXT
);

CREATE TABLE endpoint_details (
    id                TEXT     NOT NULL PRIMARY KEY,
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
    max_limit         BIGINT   NOT NULL
);

INSERT INTO products (id, product_type, company_id, user_id, connection_id, name, slug, description, category, labels, timeout_ms,
                      allow_ai_training, status, sample, sampled_at, created_at, updated_at, published_at)
SELECT id, 'asset', company_id, user_id, connection_id, name, slug, description, category, labels, timeout_ms,
       allow_ai_training, status, sample, CASE WHEN sample IS NULL THEN NULL ELSE published_at END, created_at, updated_at, published_at
FROM assets;

INSERT INTO products (id, product_type, company_id, user_id, connection_id, name, slug, description, category, labels, timeout_ms,
                      allow_ai_training, status, learned, sample, sampled_at, created_at, updated_at, published_at)
SELECT id, 'endpoint', company_id, user_id, connection_id, name, slug, description, category, labels, timeout_ms,
       allow_ai_training, status, learned, sample, sampled_at, created_at, updated_at, published_at
FROM endpoints;

INSERT INTO asset_details (id, asset_type, sport, source_kind, source, parameters, result_type, unit, visualization, prediction, privacy,
                           freshness_column)
SELECT id, asset_type, sport, source_kind, source, parameters, result_type, unit, visualization, prediction, privacy, freshness_column
FROM assets;

INSERT INTO endpoint_details (id, source_schema, source_table, sql_logic, fields, order_by, filters, default_limit, max_limit)
SELECT id, source_schema, source_table, sql_logic, fields, order_by, filters, default_limit, max_limit
FROM endpoints;

DROP TABLE assets;
DROP TABLE endpoints;

CREATE INDEX products_by_company ON products (company_id, product_type, created_at, id);
CREATE INDEX products_by_connection ON products (connection_id);
CREATE INDEX products_by_publication ON products (status, published_at, id);
