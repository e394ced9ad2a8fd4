"""The seller's whole path and the buyer's, with the client that openapi-python-client generates. Types are checked by mypy before it runs."""

import json
import sys

from souk_client.api.api_keys import create_key
from souk_client.api.marketplace import get_product
from souk_client.api.purchases import cancel_purchase
from souk_client.models import ApiKeyIn

from buyer import Buyer
from company import done, refused
from seller import Seller


def main() -> None:
    ready = json.load(open(sys.argv[1]))
    seller = Seller(ready["base_url"], ready["seller"]["company_id"], ready["seller"]["api_key"])
    buyer = Buyer(ready["base_url"], ready["buyer"]["company_id"], ready["buyer"]["api_key"])

    connection, table = seller.connects()
    feed = seller.offers_a_feed(connection, table)
    asset = seller.offers_an_asset(connection, table)
    webhook = seller.listens()

    buyer.finds(asset, feed)
    had = buyer.balance()
    bought = buyer.buys(asset.id)
    counted = buyer.runs(asset)
    charged = buyer.looks_at_the_books(bought, had)
    subscribed = buyer.buys(feed.id)
    assert subscribed.endpoint_key, subscribed
    key = subscribed.endpoint_key.key
    assert len(set(buyer.reads(feed, key))) == counted
    charged += buyer.looks_at_the_books(subscribed, had - charged)

    seller.looks_at_the_books(asset, feed, charged)
    buyer.leaves(subscribed, feed, key)
    done(cancel_purchase.sync_detailed(buyer.id, bought.id, client=buyer.client))
    seller.closes(asset, feed, webhook)
    refused(get_product.sync(asset.id, client=buyer.client), "PRODUCT_NOT_FOUND")

    # What is refused has one type, and names every field at once.
    body = ApiKeyIn(name="", rate_limit=0, role_id=9)
    wrong = refused(create_key.sync(seller.id, client=seller.client, body=body), "VALIDATION_ERROR")
    print("python: a seller's and a buyer's path;", charged, "credits moved;", wrong.error.message)


main()
