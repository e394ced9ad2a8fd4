"""What a seller does: a connection, a feed and an asset of it, their prices, a webhook, the books, and the end of it."""

import time
from datetime import UTC, datetime, timedelta

from souk_client.api.assets import (
    asset_statistics,
    create_asset,
    delete_asset,
    publish_asset,
    test_asset,
    test_asset_defaults,
    unpublish_asset,
    update_asset,
)
from souk_client.api.companies import company_sales, list_executions, list_failed_executions, seller_dashboard
from souk_client.api.connections import create_connection, get_connection_schema, test_connection
from souk_client.api.endpoints import (
    create_endpoint,
    delete_endpoint,
    endpoint_stats,
    get_endpoint_url,
    list_available_endpoints,
    publish_endpoint,
    test_endpoint,
    unpublish_endpoint,
    update_endpoint,
)
from souk_client.api.files import list_files
from souk_client.api.payouts import create_payout, get_earnings, list_payouts, set_payout_method
from souk_client.api.prices import active_price, create_endpoint_price, create_price, delete_price, list_prices, update_price
from souk_client.api.reference_data import list_storage_engines
from souk_client.api.webhooks import create_webhook, delete_webhook, list_deliveries, update_webhook
from souk_client.models import (
    AssetIn,
    Asset,
    AssetParameter,
    AssetPatch,
    AssetType,
    CallableRoute,
    CatalogTable,
    CompanySalesGroupBy,
    ConnectionIn,
    Connection,
    CredentialType,
    Direction,
    EndpointComparison,
    EndpointField,
    EndpointIn,
    Endpoint,
    EndpointPatch,
    EndpointSort,
    EndpointSorting,
    EventType,
    FilterOperator,
    FreeOf,
    MethodIn,
    ParameterType,
    PayoutIn,
    PayoutMethodType,
    PriceIn,
    PricePatch,
    ProductStatus,
    TableSource,
    TestAssetDefaultsFilters,
    WebhookIn,
    WebhookPatch,
)

from company import Company, done, execution, refused, right


class Seller(Company):
    def connects(self) -> tuple[Connection, CatalogTable]:
        engines = right(list_storage_engines.sync(client=self.client)).data
        sqlite = next(engine for engine in engines if engine.slug == "sqlite")
        file = right(list_files.sync(self.id, client=self.client)).data[0]
        body = ConnectionIn(
            engine_id=sqlite.id,
            name="By the Python client",
            credential_type=CredentialType.NONE,
            credentials="{}",
            database=file.name,
        )
        connection = right(create_connection.sync(self.id, client=self.client, body=body)).data
        report = right(test_connection.sync(self.id, connection.id, client=self.client)).data
        assert report.success, report
        catalog = right(get_connection_schema.sync(self.id, connection.id, client=self.client)).data
        return connection, catalog.schemas[0].tables[0]

    def offers_a_feed(self, connection: Connection, table: CatalogTable) -> Endpoint:
        assert table.fields, table
        columns = [field.name for field in table.fields]
        body = EndpointIn(
            connection_id=connection.id,
            name="Matches, fed by the Python client",
            source=TableSource(table=table.name, schema="main"),
            fields=[EndpointField(name=name) for name in columns if name != "home_team"]
            + [EndpointField(name="home_team", alias="host", description="Who plays at home.")],
            filters=["season", EndpointComparison(field="home_goals", operators=[FilterOperator.GTE, FilterOperator.IN])],
            order_by=["id"],
            sorts=[EndpointSort(name="goals", order_by=["-home_goals", EndpointSorting(field="id", direction=Direction.ASC)])],
        )
        made = right(create_endpoint.sync(self.id, client=self.client, body=body)).data
        assert made.status == ProductStatus.DRAFT and made.price_credits is None, made
        patch = EndpointPatch(description="All of them.", default_limit=4, max_limit=50, tags=["matches"])
        changed = right(update_endpoint.sync(self.id, made.id, client=self.client, body=patch)).data
        assert (changed.name, changed.max_limit, changed.tags) == (made.name, 50, ["matches"]), changed
        assert changed.filters[0] == "season" and not isinstance(changed.filters[1], str), changed
        assert changed.filters[1].operators == [FilterOperator.GTE, FilterOperator.IN], changed
        assert changed.sorts[0].order_by[0].direction == Direction.DESC, changed
        tested = right(test_endpoint.sync(self.id, made.id, client=self.client)).data
        assert tested.rows[0]["id"] == 1 and "host" in tested.rows[0], tested
        assert len(tested.fields) == len(columns), tested
        price = right(create_endpoint_price.sync(self.id, made.id, client=self.client, body=PriceIn(price_credits=2))).data
        assert (price.endpoint_id, price.price_usd, price.is_active) == (made.id, 1, True), price
        published = right(publish_endpoint.sync(self.id, made.id, client=self.client)).data
        assert published.status == ProductStatus.PUBLISHED and published.price_credits == 2, published
        assert published.published_at and published.published_at >= made.created_at, published
        routes = right(list_available_endpoints.sync(self.id, made.id, client=self.client)).data
        data = next(route for route in routes if route.name == CallableRoute.DATA)
        assert data.url == right(get_endpoint_url.sync(self.id, made.id, client=self.client)).data.url, data
        return published

    def offers_an_asset(self, connection: Connection, table: CatalogTable) -> Asset:
        body = AssetIn(
            connection_id=connection.id,
            asset_type=AssetType.CALCULATION,
            name="High wins at home, counted by the Python client",
            sql_logic=f"SELECT COUNT(*) FROM {table.name} WHERE home_goals >= :at_least AND (:season IS NULL OR season = :season)",
            parameters=[
                AssetParameter(name="at_least", type_=ParameterType.NUMBER, minimum=0, maximum=20.5),
                AssetParameter(name="season", type_=ParameterType.INTEGER, required=False, enum=[2024, 2025]),
            ],
        )
        made = right(create_asset.sync(self.id, client=self.client, body=body)).data
        assert made.parameters == body.parameters, made
        patch = AssetPatch(unit="matches", category="results")
        changed = right(update_asset.sync(self.id, made.id, client=self.client, body=patch)).data
        assert (changed.unit, changed.name, changed.price_credits) == ("matches", made.name, None), changed
        tested = right(test_asset.sync(self.id, made.id, client=self.client, body=execution()))
        assert (tested.meta.test, tested.meta.credits_used, tested.meta.billing_reason) == (True, 0, FreeOf.TEST), tested
        all_seasons = TestAssetDefaultsFilters.from_dict({"at_least": "2.5"})
        both = right(test_asset_defaults.sync(self.id, made.id, client=self.client, filters=all_seasons)).data.answer_value
        assert isinstance(both, int) and isinstance(tested.data.answer_value, int), (both, tested)
        assert both > tested.data.answer_value > 0, (both, tested)
        wrong = refused(test_asset.sync(self.id, made.id, client=self.client), "INVALID_PARAMETER").error.details.errors
        assert wrong and [(error.field, error.code) for error in wrong] == [("params.at_least", "required")], wrong
        self.prices(made)
        published = right(publish_asset.sync(self.id, made.id, client=self.client, body=execution())).data
        assert (published.status, published.price_credits) == (ProductStatus.PUBLISHED, 3), published
        return published

    def prices(self, asset: Asset) -> None:
        """A price that holds; one that is to hold from tomorrow on is changed, then dropped."""
        refused(active_price.sync(self.id, asset.id, client=self.client), "PRICE_NOT_FOUND")
        right(create_price.sync(self.id, asset.id, client=self.client, body=PriceIn(price_usd=2.5)))
        holds = right(create_price.sync(self.id, asset.id, client=self.client, body=PriceIn(price_credits=3))).data
        tomorrow = datetime.now(UTC) + timedelta(days=1)
        later = PriceIn(price_credits=9, effective_from=tomorrow)
        planned = right(create_price.sync(self.id, asset.id, client=self.client, body=later)).data
        dearer = PricePatch(price_credits=11)
        planned = right(update_price.sync(self.id, asset.id, planned.id, client=self.client, body=dearer)).data
        assert (planned.price_credits, planned.price_usd, planned.is_active) == (11, 5.5, False), planned
        listed = right(list_prices.sync(self.id, asset.id, client=self.client))
        assert [price.price_credits for price in listed.data] == [11, 3, 5] and listed.meta.total == 3, listed
        done(delete_price.sync_detailed(self.id, asset.id, planned.id, client=self.client))
        active = right(active_price.sync(self.id, asset.id, client=self.client)).data
        assert active.id == holds.id and active.effective_to is None, active

    def listens(self) -> str:
        body = WebhookIn(url="https://hooks.example.com/souk", event_types=[EventType.PURCHASE_CREATED])
        made = right(create_webhook.sync(self.id, client=self.client, body=body)).data
        assert made.secret and made.event_types == [EventType.PURCHASE_CREATED], made
        # Not sent: nobody is there.
        changed = right(update_webhook.sync(self.id, made.id, client=self.client, body=WebhookPatch(is_active=False))).data
        assert not changed.is_active and not changed.secret, changed
        assert right(list_deliveries.sync(self.id, made.id, client=self.client)).meta.total == 0
        return made.id

    def revenue(self, product: str) -> int:
        group = CompanySalesGroupBy.PRODUCT
        sales = right(company_sales.sync(self.id, client=self.client, group_by=group))
        assert sales.meta.totals.revenue_credits is not None, sales
        return next((row.revenue_credits or 0 for row in sales.data if row.group == product), 0)

    def looks_at_the_books(self, asset: Asset, feed: Endpoint, charged: int) -> None:
        assert self.revenue(asset.id) + self.revenue(feed.id) == charged
        figures = right(seller_dashboard.sync(self.id, client=self.client)).data
        assert figures.revenue_credits >= charged and asset.id in [top.product_id for top in figures.top_products], figures
        runs = right(asset_statistics.sync(self.id, asset.id, client=self.client)).data
        assert (runs.credits_earned, runs.unique_buyers) == (self.revenue(asset.id), 1), runs
        assert right(endpoint_stats.sync(self.id, feed.id, client=self.client)).data.rows_served > 0
        assert right(list_failed_executions.sync(self.id, client=self.client)).meta.total >= 0
        # Written within a second, behind the requests' backs.
        for _ in range(100):
            newest = right(list_executions.sync(self.id, client=self.client, product_id=asset.id)).data
            if newest:
                break
            time.sleep(0.1)
        assert newest and all(run.product_id == asset.id for run in newest), newest
        earned = right(get_earnings.sync(self.id, client=self.client)).data
        assert earned.gross_credits >= charged and earned.pending_usd > 0, earned
        body = MethodIn(type_=PayoutMethodType.BANK_ACCOUNT, account_holder="Matchday Ltd", destination="DE89370400440532013000")
        method = right(set_payout_method.sync(self.id, client=self.client, body=body)).data
        assert method.destination_last4 == "3000", method
        asked = create_payout.sync(self.id, client=self.client, body=PayoutIn(amount_usd=10_000), idempotency_key="python-payout")
        refused(asked, "PAYABLE_TOO_LOW")
        assert right(list_payouts.sync(self.id, client=self.client)).data == []

    def closes(self, asset: Asset, feed: Endpoint, webhook: str) -> None:
        unpublished = right(unpublish_asset.sync(self.id, asset.id, client=self.client)).data
        assert unpublished.status == ProductStatus.UNPUBLISHED, unpublished
        assert right(unpublish_endpoint.sync(self.id, feed.id, client=self.client)).data.status == unpublished.status
        done(delete_asset.sync_detailed(self.id, asset.id, client=self.client))
        done(delete_endpoint.sync_detailed(self.id, feed.id, client=self.client))
        done(delete_webhook.sync_detailed(self.id, webhook, client=self.client))
