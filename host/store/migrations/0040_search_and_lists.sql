-- Industries and use cases are terms of a product too (`#i51`, `#u3`), so that search need not read the labels of all products. A host indexes
-- what has an older version when it starts (store/src/search/index.rs). Portable to SQLite and PostgreSQL.
ALTER TABLE search_products ADD COLUMN version SMALLINT NOT NULL DEFAULT 0;

-- All that searching for a word reads is in one index; SQLite has it there already.
/* PostgreSQL: ALTER TABLE search_terms DROP CONSTRAINT search_terms_pkey, ADD PRIMARY KEY (term, subject_id) INCLUDE (weight); */

-- Which products a page of a list has, by an index alone.
DROP INDEX products_by_company;
CREATE INDEX products_by_company ON products (company_id, product_type, created_at, id, status);
