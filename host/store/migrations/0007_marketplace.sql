-- Refunds are rare, and deducted wherever a buyer's spending on a product is shown.
CREATE INDEX transactions_of_refunds ON transactions (company_id, product_id) WHERE type = 'refund';
