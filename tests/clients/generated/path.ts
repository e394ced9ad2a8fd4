// The seller's whole path and the buyer's, with the client that openapi-generator makes for TypeScript and fetch.

import { readFileSync } from "node:fs";
import assert from "node:assert/strict";
import { Buyer } from "./buyer.js";
import { APIKeysApi } from "./client/index.js";
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
assert.ok(subscribed.endpointKey);
const { key } = subscribed.endpointKey;
assert.equal(new Set(await buyer.reads(feed, key)).size, counted);
const charged = forRuns + (await buyer.looksAtTheBooks(subscribed, had - forRuns));

await seller.looksAtTheBooks(asset, feed, charged);
await buyer.leaves(subscribed, feed, key);
await buyer.cancels(bought);
await seller.closes(asset, feed, webhook);
await refused(buyer.product(asset.id), "PRODUCT_NOT_FOUND");

// What is refused names every field at once.
const apiKeyIn = { name: "x", rateLimit: 0, roleId: 9 };
const wrong = await refused(seller.ask(APIKeysApi).createKey({ companyId: seller.id, apiKeyIn }), "VALIDATION_ERROR");
assert.deepEqual(wrong.details.errors?.map((error) => error.field), ["rate_limit", "role_id"]);
console.log(`generated: a seller's and a buyer's path; ${charged} credits moved`);
