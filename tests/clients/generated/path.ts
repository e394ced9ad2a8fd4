// The seller's whole path and the buyer's, with the client that openapi-generator makes for TypeScript and fetch.

import { readFileSync } from "node:fs";
import assert from "node:assert/strict";
import {
  APIKeysApi,
  AssetsApi,
  CompaniesApi,
  Configuration,
  ConnectionsApi,
  CreditsApi,
  DataApi,
  FilesApi,
  MarketplaceApi,
  PricesApi,
  PurchasesApi,
  ReferenceDataApi,
  ResponseError,
} from "./client/index.js";

const ready = JSON.parse(readFileSync(process.argv[2]!, "utf8"));
const configured = (key: string) =>
  new Configuration({ basePath: ready.base_url, apiKey: (name) => (name === "x-api-key" ? key : "") });
const seller = configured(ready.seller.api_key);
const buyer = configured(ready.buyer.api_key);
const companyId: string = ready.seller.company_id;
const buyerId: string = ready.buyer.company_id;

// The seller: a connection, an asset, a price, the market.
const engines = await new ReferenceDataApi(seller).listStorageEngines();
const sqlite = engines.data.find((engine) => engine.slug === "sqlite");
assert.ok(sqlite);
const files = await new FilesApi(seller).listFiles({ companyId });
const connections = new ConnectionsApi(seller);
const connection = await connections.createConnection({
  companyId,
  connectionIn: {
    engineId: sqlite.id,
    name: "By the generated client",
    credentialType: "NONE",
    credentials: "{}",
    database: files.data[0]!.name,
  },
});
const connectionId = connection.data.id;
const report = await connections.testConnection({ companyId, connectionId });
assert.ok(report.data.success);
const schema = await connections.getConnectionSchema({ companyId, connectionId });
const table = schema.data.schemas[0]!.tables[0]!.name;
const assets = new AssetsApi(seller);
const asset = await assets.createAsset({
  companyId,
  assetIn: {
    connectionId,
    assetType: "CALCULATION",
    name: "Rows, counted by the generated client",
    sqlLogic: `SELECT COUNT(*) FROM ${table}`,
  },
});
const assetId = asset.data.id;
const tested = await assets.testAsset({ companyId, assetId });
assert.equal(tested.meta.creditsUsed, 0);
await new PricesApi(seller).createPrice({ companyId, assetId, priceIn: { priceCredits: 3 } });
const published = await assets.publishAsset({ companyId, assetId });
assert.equal(published.data.status, "published");
const revenue = async () => {
  const sales = await new CompaniesApi(seller).companySales({ companyId });
  return sales.data.reduce((sum, day) => sum + (day.revenueCredits ?? 0), 0);
};
const sold = await revenue();

// The buyer: what is on sale, its terms, an execution, what is left.
const listed = await new MarketplaceApi(buyer).listProducts({ q: "counted generated" });
assert.equal(listed.data.find((product) => product.id === assetId)?.priceCredits, 3);
await new PurchasesApi(buyer).createPurchase({
  companyId: buyerId,
  purchaseIn: { productId: assetId, acceptTerms: true },
});
const balance = async () => (await new CreditsApi(buyer).getCredits({ companyId: buyerId })).data.balanceCredits;
const had = await balance();
const ran = await new AssetsApi(buyer).executeAsset({
  companyId: buyerId,
  assetId,
  idempotencyKey: "generated-path-1",
});
const page = await new DataApi(configured(ready.buyer.endpoint_key)).fetchDataByHandle({
  companyHandle: ready.seller.handle,
  endpointSlug: ready.seller.endpoint_slug,
  limit: 3,
});
assert.equal(page.data.response.data.length, 3);
const charged = ran.meta.creditsUsed + page.data.service.billing.creditsUsed;
assert.equal(await balance(), had - charged);

// The seller again: what was sold.
assert.equal(await revenue(), sold + charged);

// What is refused names every field at once.
const refused = await new APIKeysApi(seller)
  .createKey({ companyId, apiKeyIn: { name: "x", rateLimit: 0, roleId: 9 } })
  .then(() => assert.fail("a key without a role"), (error) => error);
assert.ok(refused instanceof ResponseError);
const problem = await refused.response.json();
assert.deepEqual(problem.error.details.errors.map((error: { field: string }) => error.field), ["rate_limit", "role_id"]);
console.log(`generated: a seller's and a buyer's path; ${charged} credits moved`);
