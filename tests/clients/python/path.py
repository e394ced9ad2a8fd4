"""The seller's whole path and the buyer's, with the client that openapi-python-client generates. Types are checked by mypy before it runs."""

import json
import sys
from typing import TypeVar

from souk_client import AuthenticatedClient
from souk_client.api.api_keys import create_key
from souk_client.api.assets import create_asset, execute_asset, publish_asset, test_asset
from souk_client.api.companies import company_sales
from souk_client.api.connections import create_connection, get_connection_schema, test_connection
from souk_client.api.credits_ import get_credits
from souk_client.api.data import fetch_data_by_handle
from souk_client.api.files import list_files
from souk_client.api.marketplace import list_products
from souk_client.api.prices import create_price
from souk_client.api.purchases import create_purchase
from souk_client.api.reference_data import list_storage_engines
from souk_client.models import (
    ApiKeyIn,
    AssetIn,
    AssetType,
    ConnectionIn,
    CredentialType,
    PriceIn,
    Problem,
    PurchaseIn,
)

T = TypeVar("T")


def right(answer: T | Problem | None) -> T:
    """The answer, unless it is a refusal."""
    if isinstance(answer, Problem):
        raise SystemExit(f"refused: {answer.to_dict()}")
    assert answer is not None, "an answer that the document does not describe"
    return answer


def client(base_url: str, key: str) -> AuthenticatedClient:
    return AuthenticatedClient(
        base_url=base_url,
        token=key,
        prefix="",
        auth_header_name="x-api-key",
        raise_on_unexpected_status=True,
    )


def main() -> None:
    ready = json.load(open(sys.argv[1]))
    base_url = ready["base_url"]
    company = ready["seller"]["company_id"]
    seller = client(base_url, ready["seller"]["api_key"])
    buyer_company = ready["buyer"]["company_id"]
    buyer = client(base_url, ready["buyer"]["api_key"])

    # The seller: a connection, an asset, a price, the market.
    engines = right(list_storage_engines.sync(client=seller)).data
    sqlite = next(engine for engine in engines if engine.slug == "sqlite")
    file = right(list_files.sync(company, client=seller)).data[0]
    connection = right(
        create_connection.sync(
            company,
            client=seller,
            body=ConnectionIn(
                engine_id=sqlite.id,
                name="By the Python client",
                credential_type=CredentialType.NONE,
                credentials="{}",
                database=file.name,
            ),
        )
    ).data
    report = right(test_connection.sync(company, connection.id, client=seller)).data
    assert report.success, report
    schema = right(get_connection_schema.sync(company, connection.id, client=seller)).data
    table = schema.schemas[0].tables[0].name
    asset = right(
        create_asset.sync(
            company,
            client=seller,
            body=AssetIn(
                connection_id=connection.id,
                asset_type=AssetType.CALCULATION,
                name="Rows, counted by the Python client",
                sql_logic=f"SELECT COUNT(*) FROM {table}",
            ),
        )
    ).data
    tested = right(test_asset.sync(company, asset.id, client=seller))
    assert tested.meta.credits_used == 0, tested
    right(create_price.sync(company, asset.id, client=seller, body=PriceIn(price_credits=3)))
    published = right(publish_asset.sync(company, asset.id, client=seller)).data
    assert published.status == "published", published
    before = right(company_sales.sync(company, client=seller))

    # The buyer: what is on sale, its terms, an execution, what is left.
    listed = right(list_products.sync(client=buyer, q="counted Python client")).data
    product = next(product for product in listed if product.id == asset.id)
    assert product.price_credits == 3, product
    right(
        create_purchase.sync(
            buyer_company,
            client=buyer,
            body=PurchaseIn(product_id=product.id, accept_terms=True),
        )
    )
    had = right(get_credits.sync(buyer_company, client=buyer)).data.balance_credits
    ran = right(execute_asset.sync(buyer_company, asset.id, client=buyer, idempotency_key="python-path-1"))
    assert ran.data.answer_value == tested.data.answer_value, ran
    again = right(execute_asset.sync(buyer_company, asset.id, client=buyer, idempotency_key="python-path-1"))
    assert again.data.execution_id == ran.data.execution_id, again
    reader = client(base_url, ready["buyer"]["endpoint_key"])
    page = right(
        fetch_data_by_handle.sync(
            ready["seller"]["handle"], ready["seller"]["endpoint_slug"], client=reader, limit=3
        )
    ).data
    assert len(page.response.data) == 3, page
    charged = ran.meta.credits_used + page.service.billing.credits_used
    has = right(get_credits.sync(buyer_company, client=buyer)).data.balance_credits
    assert has == had - charged and charged > 3, (had, has, charged)

    # The seller again: what was sold.
    after = right(company_sales.sync(company, client=seller))
    assert len(after.data) == len(before.data), after
    assert sum(row.revenue_credits or 0 for row in after.data) - sum(
        row.revenue_credits or 0 for row in before.data
    ) == charged, (before, after)

    # What is refused has one type, and names every field at once.
    wrong = create_key.sync(
        company, client=seller, body=ApiKeyIn(name="", rate_limit=0, role_id=9)
    )
    assert isinstance(wrong, Problem), wrong
    print("python: a seller's and a buyer's path;", charged, "credits moved;", wrong.error.message)


main()
