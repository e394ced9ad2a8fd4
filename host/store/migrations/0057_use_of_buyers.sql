-- What a purchase was used for is found by its buyer and product. Portable to SQLite and PostgreSQL.

-- By the indexes before it was added up from all that its buyer used, or from all that anybody used of the product: for each purchase of a page.
CREATE INDEX usage_days_of_buyer ON usage_days (company_id, product_id);
