// The seller's whole path and the buyer's, with openapi-fetch on the types that openapi-typescript generates.

import { readFileSync } from "node:fs";
import assert from "node:assert/strict";
import createClient from "openapi-fetch";
import type { components, paths } from "./schema.js";

type Problem = components["schemas"]["Problem"];

const ready = JSON.parse(readFileSync(process.argv[2]!, "utf8"));
const client = (key: string) =>
  // A feed has five media types: without one named a page would be of all their types.
  createClient<paths, "application/json">({ baseUrl: ready.base_url, headers: { "x-api-key": key } });

/** The answer, unless it is a refusal. */
function right<T>(answer: { data?: T; error?: Problem }): T {
  assert.equal(answer.error, undefined, JSON.stringify(answer.error));
  assert.ok(answer.data !== undefined);
  return answer.data;
}

const seller = client(ready.seller.api_key);
const buyer = client(ready.buyer.api_key);
const ofSeller = { company_id: ready.seller.company_id as string };
const ofBuyer = { company_id: ready.buyer.company_id as string };

// The seller: a connection, an asset, a price, the market.
const engines = right(await seller.GET("/storage-engines")).data;
const sqlite = engines.find((engine) => engine.slug === "sqlite");
assert.ok(sqlite);
const files = right(await seller.GET("/companies/{company_id}/files", { params: { path: ofSeller } })).data;
const connection = right(
  await seller.POST("/companies/{company_id}/connections", {
    params: { path: ofSeller },
    body: {
      engine_id: sqlite.id,
      name: "By openapi-fetch",
      credential_type: "NONE",
      credentials: "{}",
      database: files[0]!.name,
    },
  }),
).data;
const ofConnection = { ...ofSeller, connection_id: connection.id };
const report = right(
  await seller.POST("/companies/{company_id}/connections/{connection_id}/test", { params: { path: ofConnection } }),
).data;
assert.ok(report.success);
const schema = right(
  await seller.GET("/companies/{company_id}/connections/{connection_id}/schema", { params: { path: ofConnection } }),
).data;
const table = schema.schemas[0]!.tables[0]!.name;
const asset = right(
  await seller.POST("/companies/{company_id}/assets", {
    params: { path: ofSeller },
    body: {
      connection_id: connection.id,
      asset_type: "CALCULATION",
      name: "Rows, counted by openapi-fetch",
      sql_logic: `SELECT COUNT(*) FROM ${table}`,
    },
  }),
).data;
const ofAsset = { ...ofSeller, asset_id: asset.id };
const tested = right(
  await seller.POST("/companies/{company_id}/assets/{asset_id}/test", { params: { path: ofAsset } }),
);
assert.equal(tested.meta.credits_used, 0);
right(
  await seller.POST("/companies/{company_id}/assets/{asset_id}/prices", {
    params: { path: ofAsset },
    body: { price_credits: 3 },
  }),
);
const published = right(
  await seller.POST("/companies/{company_id}/assets/{asset_id}/publish", { params: { path: ofAsset } }),
).data;
assert.equal(published.status, "published");
const revenue = async () => {
  const sales = right(await seller.GET("/companies/{company_id}/sales", { params: { path: ofSeller } }));
  return sales.data.reduce((sum, day) => sum + (day.revenue_credits ?? 0), 0);
};
const sold = await revenue();

// The buyer: what is on sale, its terms, an execution, what is left.
const listed = right(await buyer.GET("/marketplace/products", { params: { query: { q: "counted openapi" } } })).data;
const product = listed.find((product) => product.id === asset.id);
assert.equal(product?.price_credits, 3);
right(
  await buyer.POST("/companies/{company_id}/purchases", {
    params: { path: ofBuyer },
    body: { product_id: asset.id, accept_terms: true },
  }),
);
const balance = async () =>
  right(await buyer.GET("/companies/{company_id}/credits", { params: { path: ofBuyer } })).data.balance_credits;
const had = await balance();
const ran = right(
  await buyer.POST("/companies/{company_id}/assets/{asset_id}/execute", {
    params: { path: { ...ofBuyer, asset_id: asset.id }, header: { "Idempotency-Key": "fetch-path-1" } },
  }),
);
assert.equal(ran.data.answer_value, tested.data.answer_value);
const reader = client(ready.buyer.endpoint_key);
const page = right(
  await reader.GET("/endpoints/v1/{company_handle}/{endpoint_slug}", {
    params: {
      path: { company_handle: ready.seller.handle, endpoint_slug: ready.seller.endpoint_slug },
      query: { limit: 3 },
    },
  }),
).data;
assert.equal(page.response.data.length, 3);
const charged = ran.meta.credits_used + page.service.billing.credits_used;
assert.equal(await balance(), had - charged);

// The seller again: what was sold.
assert.equal(await revenue(), sold + charged);

// What is refused names every field at once.
const wrong = await seller.POST("/companies/{company_id}/api-keys", {
  params: { path: ofSeller },
  body: { name: "x", rate_limit: 0, role_id: 9 },
});
const fields = wrong.error?.error.details.errors?.map((error) => error.field);
assert.deepEqual(fields, ["rate_limit", "role_id"]);
console.log(`fetch: a seller's and a buyer's path; ${charged} credits moved; refused ${fields?.join(", ")}`);
