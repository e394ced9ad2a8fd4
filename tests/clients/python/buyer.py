"""What a buyer does: looks around, buys, runs an asset and reads a feed, goes over the bill, and leaves."""

from http import HTTPStatus

from souk_client.api.assets import analyze, analyze_by_query, execute_asset, process_asset, process_asset_by_query
from souk_client.api.credits_ import get_credits, get_transaction, list_transactions
from souk_client.api.data import fetch_data_by_handle
from souk_client.api.marketplace import get_product, list_products, preview_product
from souk_client.api.purchases import access_purchase, cancel_purchase, create_purchase, list_purchases
from souk_client.models import (
    AnalyzeByQueryFilters,
    Asset,
    AssetResult,
    BillingUnit,
    Endpoint,
    FetchDataByHandleFilters,
    FreeOf,
    KeyStatus,
    ListProductsProductType,
    ListPurchasesStatus,
    ListTransactionsType,
    PageAnswer,
    PageData,
    ProcessAssetByQueryFilters,
    ProductType,
    Purchase,
    PurchaseIn,
    PurchaseStatus,
    TransactionType,
)
from souk_client.types import UNSET, Unset

from company import FILTERS, QUERY, Company, done, execution, refused, right


class Buyer(Company):
    def balance(self) -> int:
        return right(get_credits.sync(self.id, client=self.client)).data.balance_credits

    def finds(self, asset: Asset, feed: Endpoint) -> None:
        kind = ListProductsProductType.ASSET
        listed = right(list_products.sync(client=self.client, q="counted Python client", product_type=kind))
        assert [product.id for product in listed.data] == [asset.id], listed
        product = right(get_product.sync(asset.id, client=self.client)).data
        assert (product.price_credits, product.price_usd, product.billing_unit) == (3, 1.5, BillingUnit.EXECUTION), product
        assert product.product_type == ProductType.ASSET and not product.access.purchased and not product.fields, product
        fed = right(get_product.sync(feed.id, client=self.client)).data
        assert fed.fields and fed.fields[-1].name == "host" and fed.sport is None, fed
        insight = right(preview_product.sync(asset.id, client=self.client))
        assert isinstance(insight.data, AssetResult) and insight.meta and insight.meta.preview, insight
        assert isinstance(insight.data.answer_value, int) and insight.data.execution_id is None, insight
        rows = right(preview_product.sync(feed.id, client=self.client))
        assert isinstance(rows.data, PageData) and len(rows.data.response.data) == 3 and not rows.meta, rows
        assert rows.data.service.billing.reason == FreeOf.PREVIEW, rows

    def buys(self, product: str) -> Purchase:
        body = PurchaseIn(product_id=product, accept_terms=True)
        first = create_purchase.sync_detailed(self.id, client=self.client, body=body)
        again = create_purchase.sync_detailed(self.id, client=self.client, body=body)
        assert (first.status_code, again.status_code) == (HTTPStatus.CREATED, HTTPStatus.OK), (first, again)
        purchase = right(first.parsed).data
        assert right(again.parsed).data.id == purchase.id and purchase.status == PurchaseStatus.ACTIVE, again
        return purchase

    def runs(self, asset: Asset) -> int:
        """The same question in each of the ways in which it may be asked; all of them answer the same."""
        by_body = execution()
        ran = right(execute_asset.sync(self.id, asset.id, client=self.client, body=by_body, idempotency_key="python-path-1"))
        again = right(execute_asset.sync(self.id, asset.id, client=self.client, body=by_body, idempotency_key="python-path-1"))
        assert again.data.execution_id == ran.data.execution_id, again
        handle = asset.company_handle
        by_query = AnalyzeByQueryFilters.from_dict(QUERY)
        answers = [
            ran,
            right(analyze.sync(handle, asset.slug, client=self.client, body=by_body)),
            right(analyze_by_query.sync(handle, asset.slug, client=self.client, filters=by_query)),
            right(process_asset.sync(self.id, asset.id, client=self.client, body=by_body)),
            right(process_asset_by_query.sync(
                self.id, asset.id, client=self.client, filters=ProcessAssetByQueryFilters.from_dict(QUERY)
            )),
        ]
        assert len({answer.data.answer_value for answer in answers}) == 1, answers
        assert all(answer.data.unit == "matches" and answer.meta.billing_reason in (None, UNSET) for answer in answers), answers
        assert isinstance(ran.data.answer_value, int), ran
        return ran.data.answer_value

    def reads(self, feed: Endpoint, key: str) -> list[int]:
        """All pages, by their cursors; then the first again, which the client has already."""
        reader = self.by(key)
        filters = FetchDataByHandleFilters.from_dict(FILTERS)
        ids: list[int] = []
        cursor: str | Unset = UNSET
        while True:
            page: PageAnswer = right(fetch_data_by_handle.sync(
                feed.company_handle, feed.slug, client=reader, filters=filters, sort="goals", limit=2, fields="id,home_goals", cursor=cursor
            ))
            rows = page.data.response.data
            assert all(set(row.additional_keys) == {"id", "home_goals"} and row["home_goals"] >= 3 for row in rows), page
            ids += [row["id"] for row in rows]
            paging = page.data.service.pagination
            assert paging and paging.returned == len(rows), page
            if not paging.next_cursor:
                assert not paging.has_more, paging
                break
            cursor = paging.next_cursor
        first = fetch_data_by_handle.sync_detailed(feed.company_handle, feed.slug, client=reader, limit=1)
        tag = first.headers["etag"]
        same = fetch_data_by_handle.sync_detailed(feed.company_handle, feed.slug, client=reader, limit=1, if_none_match=tag)
        assert same.status_code == HTTPStatus.NOT_MODIFIED and same.parsed is None, same
        return ids

    def looks_at_the_books(self, bought: Purchase, had: int) -> int:
        """What was charged since: by the balance, by the lines of the ledger and by the purchase, which agree."""
        charged = had - self.balance()
        lines = right(list_transactions.sync(
            self.id, client=self.client, type_=ListTransactionsType.CHARGE, product_id=bought.product_id, per_page=100
        )).data
        assert lines and all(line.type_ == TransactionType.CHARGE and line.reversal_of is None for line in lines), lines
        assert right(get_transaction.sync(self.id, lines[0].id, client=self.client)).data == lines[0]
        active = ListPurchasesStatus.ACTIVE
        purchases = right(list_purchases.sync(self.id, client=self.client, status=active)).data
        spent = next(purchase for purchase in purchases if purchase.id == bought.id)
        assert -sum(line.amount_credits for line in lines) == spent.credits_spent == charged, (lines, spent, charged)
        assert len(lines) <= spent.executions, (lines, spent)
        return charged

    def leaves(self, bought: Purchase, feed: Endpoint, key: str) -> None:
        kept = right(access_purchase.sync(self.id, bought.id, client=self.client)).data.endpoint_key
        assert kept and kept.status == KeyStatus.ACTIVE and kept.key.startswith("ep_****"), kept
        done(cancel_purchase.sync_detailed(self.id, bought.id, client=self.client))
        late = fetch_data_by_handle.sync(feed.company_handle, feed.slug, client=self.by(key))
        refused(late, "API_KEY_DEACTIVATED")
