// The seller's whole path and the buyer's, with openapi-fetch on the types that openapi-typescript generates.

import { readFileSync } from "node:fs";
import assert from "node:assert/strict";
import { Buyer } from "./buyer.js";
import { refused } from "./company.js";
import { Seller } from "./seller.js";

const ready = JSON.parse(readFileSync(process.argv[2]!, "utf8"));
const seller = new Seller(ready.base_url, ready.seller.company_id, ready.seller.api_key);
const buyer = new Buyer(ready.base_url, ready.buyer.company_id, ready.buyer.api_key);

const [connection, table] = await seller.connects();
const feed = await seller.offersAFeed(connection, table);
const asset = await seller.offersAnAsset(connection, table);
const webhook = await seller.listens();

await buyer.finds(asset, feed);
const had = await buyer.balance();
const bought = await buyer.buys(asset.id);
const counted = await buyer.runs(asset);
const forRuns = await buyer.looksAtTheBooks(bought, had);
const subscribed = await buyer.buys(feed.id);
assert.ok(subscribed.endpoint_key);
const { key } = subscribed.endpoint_key;
assert.equal(new Set(await buyer.reads(feed, key)).size, counted);
const charged = forRuns + (await buyer.looksAtTheBooks(subscribed, had - forRuns));

await seller.looksAtTheBooks(asset, feed, charged);
await buyer.leaves(subscribed, feed, key);
await buyer.cancels(bought);
await seller.closes(asset, feed, webhook);
refused(await buyer.product(asset.id), "PRODUCT_NOT_FOUND");

// What is refused names every field at once.
const wrong = await seller.client.POST("/companies/{company_id}/api-keys", {
  params: { path: seller.path },
  body: { name: "x", rate_limit: 0, role_id: 9 },
});
const fields = refused(wrong, "VALIDATION_ERROR").details.errors?.map((error) => error.field);
assert.deepEqual(fields, ["rate_limit", "role_id"]);
console.log(`fetch: a seller's and a buyer's path; ${charged} credits moved; refused ${fields?.join(", ")}`);
