-- What products are found by, kept in the transaction that changes them (store/src/search). Portable to SQLite and PostgreSQL.

-- One row for each product that is not archived: what search filters and sorts by, in a narrow table.
CREATE TABLE search_products (
    product_id TEXT NOT NULL PRIMARY KEY,
    product_type TEXT NOT NULL,
    company_id TEXT NOT NULL,
    is_published SMALLINT NOT NULL,
    -- The name in lower case as hexadecimal digits, which every collation sorts alike.
    name_key TEXT NOT NULL,
    category TEXT,
    sport TEXT,
    result_type TEXT,
    allow_ai_training SMALLINT NOT NULL,
    -- When it was published, or else made.
    listed_at BIGINT NOT NULL,
    -- Runs by others in 30 dates, and by how many more there were in 7 dates than in the 7 before, as of the last ranking.
    popular BIGINT NOT NULL,
    trending BIGINT NOT NULL
) /* SQLite: WITHOUT ROWID */;
CREATE INDEX search_products_by_time ON search_products (listed_at, product_id);
CREATE INDEX search_products_by_name ON search_products (name_key, product_id);
CREATE INDEX search_products_by_popularity ON search_products (popular, product_id);
CREATE INDEX search_products_by_trend ON search_products (trending, product_id);
-- All that counting what is on sale asks for.
CREATE INDEX search_products_on_sale ON search_products (is_published, product_type, company_id);
CREATE INDEX search_products_by_category ON search_products (category);
CREATE INDEX search_products_by_sport ON search_products (sport);
CREATE INDEX search_products_by_company ON search_products (company_id);

-- The words of a product, and those of a company's name, which are its products' too. `subject_id` is a product or a company.
CREATE TABLE search_terms (
    term TEXT NOT NULL,
    subject_id TEXT NOT NULL,
    weight BIGINT NOT NULL,
    PRIMARY KEY (term, subject_id)
) /* SQLite: WITHOUT ROWID */;
CREATE INDEX search_terms_by_subject ON search_terms (subject_id);

-- What each word in use is looked up by: its beginnings, and what is left of it without a letter.
CREATE TABLE search_variants (
    variant TEXT NOT NULL,
    term TEXT NOT NULL,
    PRIMARY KEY (variant, term)
) /* SQLite: WITHOUT ROWID */;
CREATE INDEX search_variants_by_term ON search_variants (term);

-- Hosts that share a store agree by this row on which words are in use.
INSERT INTO settings (name, value) VALUES ('search_words', '');

CREATE INDEX companies_not_active ON companies (id) WHERE status <> 'active';

-- How many products a company has, by an index alone.
CREATE INDEX products_by_status ON products (company_id, product_type, status);
