-- Words whose rows in search_variants are to be written, or to go, a few at a time (store/src/search/variants.rs). Portable to SQLite and
-- PostgreSQL.
CREATE TABLE search_words_due (
    word TEXT NOT NULL PRIMARY KEY,
    -- What it is looked up by is all there; else it is kept under itself only.
    is_learnt SMALLINT NOT NULL CHECK (is_learnt IN (0, 1))
) /* SQLite: WITHOUT ROWID */;
