// What a seller does: a connection, a feed and an asset of it, their prices, a webhook, the books, and the end of it.

import assert from "node:assert/strict";
import {
  AssetsApi,
  CompaniesApi,
  ConnectionsApi,
  EndpointsApi,
  FilesApi,
  PayoutsApi,
  PricesApi,
  ReferenceDataApi,
  WebhooksApi,
  type AssetIn,
  type Asset,
  type CatalogTable,
  type Connection,
  type EndpointIn,
  type Endpoint,
  type PriceIn,
} from "./client/index.js";
import { Company, done, params, refused } from "./company.js";

export class Seller extends Company {
  private readonly of = { companyId: this.id };

  async connects(): Promise<[Connection, CatalogTable]> {
    const engines = await this.ask(ReferenceDataApi).listStorageEngines();
    const sqlite = engines.data.find((engine) => engine.slug === "sqlite");
    assert.ok(sqlite);
    const files = await this.ask(FilesApi).listFiles(this.of);
    const connections = this.ask(ConnectionsApi);
    const connection = await connections.createConnection({
      ...this.of,
      connectionIn: {
        engineId: sqlite.id,
        name: "By the generated client",
        credentialType: "NONE",
        credentials: "{}",
        database: files.data[0]!.name,
      },
    });
    const at = { ...this.of, connectionId: connection.data.id };
    assert.ok((await connections.testConnection(at)).data.success);
    const catalog = await connections.getConnectionSchema(at);
    return [connection.data, catalog.data.schemas[0]!.tables[0]!];
  }

  async offersAFeed(connection: Connection, table: CatalogTable): Promise<Endpoint> {
    const endpoints = this.ask(EndpointsApi);
    assert.ok(table.fields);
    const columns = table.fields.map((field) => field.name);
    const endpointIn: EndpointIn = {
      connectionId: connection.id,
      name: "Matches, fed by the generated client",
      source: { schema: "main", table: table.name },
      fields: [
        ...columns.filter((name) => name !== "home_team").map((name) => ({ name })),
        { name: "home_team", alias: "host", description: "Who plays at home." },
      ],
      filters: ["season", { field: "home_goals", operators: ["gte", "in"] }],
      orderBy: ["id"],
      sorts: [{ name: "goals", orderBy: ["-home_goals", { field: "id", direction: "asc" }] }],
    };
    const made = (await endpoints.createEndpoint({ ...this.of, endpointIn })).data;
    assert.deepEqual([made.status, made.priceCredits], ["draft", null]);
    const at = { ...this.of, endpointId: made.id };
    const endpointPatch = { description: "All of them.", defaultLimit: 4, maxLimit: 50, tags: ["matches"] };
    const changed = (await endpoints.updateEndpoint({ ...at, endpointPatch })).data;
    assert.deepEqual([changed.name, changed.maxLimit, changed.tags], [made.name, 50, ["matches"]]);
    assert.deepEqual(changed.filters, endpointIn.filters);
    assert.equal(changed.sorts[0]?.orderBy[0]?.direction, "desc");
    const tested = (await endpoints.testEndpoint(at)).data;
    assert.deepEqual([tested.rows[0]?.id, tested.fields.length], [1, columns.length]);
    const price = (await this.ask(PricesApi).createEndpointPrice({ ...at, priceIn: { priceCredits: 2 } })).data;
    assert.deepEqual([price.endpointId, price.priceUsd, price.isActive], [made.id, 1, true]);
    const published = (await endpoints.publishEndpoint(at)).data;
    assert.deepEqual([published.status, published.priceCredits], ["published", 2]);
    assert.ok(published.publishedAt && published.publishedAt >= made.createdAt);
    const routes = (await endpoints.listAvailableEndpoints(at)).data;
    const told = (await endpoints.getEndpointUrl(at)).data;
    assert.equal(routes.find((route) => route.name === "data")?.url, told.url);
    return published;
  }

  async offersAnAsset(connection: Connection, table: CatalogTable): Promise<Asset> {
    const assets = this.ask(AssetsApi);
    const assetIn: AssetIn = {
      connectionId: connection.id,
      assetType: "CALCULATION",
      name: "High wins at home, counted by the generated client",
      sqlLogic: `SELECT COUNT(*) FROM ${table.name} WHERE home_goals >= :at_least AND (:season IS NULL OR season = :season)`,
      parameters: [
        { name: "at_least", type: "number", minimum: 0, maximum: 20.5 },
        { name: "season", type: "integer", required: false, _enum: [2024, 2025] },
      ],
    };
    const made = (await assets.createAsset({ ...this.of, assetIn })).data;
    assert.deepEqual(made.parameters.map((parameter) => parameter._enum), [undefined, [2024, 2025]]);
    const at = { ...this.of, assetId: made.id };
    const changed = (await assets.updateAsset({ ...at, assetPatch: { unit: "matches", category: "results" } })).data;
    assert.deepEqual([changed.unit, changed.name, changed.priceCredits], ["matches", made.name, null]);
    const tested = await assets.testAsset({ ...at, executeIn: { params } });
    assert.deepEqual([tested.meta.test, tested.meta.creditsUsed, tested.meta.billingReason], [true, 0, "test"]);
    const both = (await assets.testAssetDefaults({ ...at, filters: { at_least: "2.5" } })).data.answerValue;
    const one = tested.data.answerValue;
    assert.ok(typeof both === "number" && typeof one === "number" && both > one && one > 0, `${both} and ${one}`);
    const wrong = await refused(assets.testAsset(at), "INVALID_PARAMETER");
    assert.deepEqual(wrong.details.errors?.map((error) => [error.field, error.code]), [["params.at_least", "required"]]);
    await this.prices(made);
    const published = (await assets.publishAsset({ ...at, executeIn: { params } })).data;
    assert.deepEqual([published.status, published.priceCredits], ["published", 3]);
    return published;
  }

  /** A price that holds; one that is to hold from tomorrow on is changed, then dropped. */
  private async prices(asset: Asset): Promise<void> {
    const prices = this.ask(PricesApi);
    const at = { ...this.of, assetId: asset.id };
    const set = async (priceIn: PriceIn) => (await prices.createPrice({ ...at, priceIn })).data;
    await refused(prices.activePrice(at), "PRICE_NOT_FOUND");
    await set({ priceUsd: 2.5 });
    const holds = await set({ priceCredits: 3 });
    const planned = await set({ priceCredits: 9, effectiveFrom: new Date(Date.now() + 24 * 60 * 60 * 1000) });
    const later = { ...at, priceId: planned.id };
    const dearer = (await prices.updatePrice({ ...later, pricePatch: { priceCredits: 11 } })).data;
    assert.deepEqual([dearer.priceCredits, dearer.priceUsd, dearer.isActive], [11, 5.5, false]);
    const listed = await prices.listPrices(at);
    assert.deepEqual([listed.data.map((price) => price.priceCredits), listed.meta.total], [[11, 3, 5], 3]);
    await done(prices.deletePriceRaw(later));
    const held = (await prices.activePrice(at)).data;
    assert.deepEqual([held.id, held.effectiveTo], [holds.id, null]);
  }

  async listens(): Promise<string> {
    const webhooks = this.ask(WebhooksApi);
    const webhookIn = { url: "https://hooks.example.com/souk", eventTypes: ["purchase.created" as const] };
    const made = (await webhooks.createWebhook({ ...this.of, webhookIn })).data;
    assert.ok(made.secret);
    assert.deepEqual(made.eventTypes, webhookIn.eventTypes);
    const at = { ...this.of, webhookId: made.id };
    // Not sent: nobody is there.
    const changed = (await webhooks.updateWebhook({ ...at, webhookPatch: { isActive: false } })).data;
    assert.ok(!changed.isActive && !changed.secret);
    assert.equal((await webhooks.listDeliveries(at)).meta.total, 0);
    return made.id;
  }

  private async revenue(product: string): Promise<number> {
    const sales = await this.ask(CompaniesApi).companySales({ ...this.of, groupBy: "product" });
    return sales.data.find((row) => row.group === product)?.revenueCredits ?? 0;
  }

  async looksAtTheBooks(asset: Asset, feed: Endpoint, charged: number): Promise<void> {
    const [companies, payouts] = [this.ask(CompaniesApi), this.ask(PayoutsApi)];
    const byAsset = await this.revenue(asset.id);
    assert.equal(byAsset + (await this.revenue(feed.id)), charged);
    const figures = (await companies.sellerDashboard(this.of)).data;
    assert.ok(figures.revenueCredits >= charged && figures.topProducts.some((top) => top.productId === asset.id));
    const runs = (await this.ask(AssetsApi).assetStatistics({ ...this.of, assetId: asset.id })).data;
    assert.deepEqual([runs.creditsEarned, runs.uniqueBuyers], [byAsset, 1]);
    const stats = (await this.ask(EndpointsApi).endpointStats({ ...this.of, endpointId: feed.id })).data;
    assert.ok(stats.rowsServed > 0);
    assert.ok((await companies.listFailedExecutions(this.of)).meta.total >= 0);
    const earned = (await payouts.getEarnings(this.of)).data;
    assert.ok(earned.grossCredits >= charged && earned.pendingUsd > 0);
    const methodIn = { type: "bank_account", accountHolder: "Matchday Ltd", destination: "DE89370400440532013000" } as const;
    assert.equal((await payouts.setPayoutMethod({ ...this.of, methodIn })).data.destinationLast4, "3000");
    const asked = { ...this.of, idempotencyKey: "generated-payout", payoutIn: { amountUsd: 10_000 } };
    await refused(payouts.createPayout(asked), "PAYABLE_TOO_LOW");
    assert.deepEqual((await payouts.listPayouts(this.of)).data, []);
  }

  async closes(asset: Asset, feed: Endpoint, webhook: string): Promise<void> {
    const [assets, endpoints] = [this.ask(AssetsApi), this.ask(EndpointsApi)];
    const [ofAsset, ofFeed] = [{ ...this.of, assetId: asset.id }, { ...this.of, endpointId: feed.id }];
    assert.equal((await assets.unpublishAsset(ofAsset)).data.status, "unpublished");
    assert.equal((await endpoints.unpublishEndpoint(ofFeed)).data.status, "unpublished");
    await done(assets.deleteAssetRaw(ofAsset));
    await done(endpoints.deleteEndpointRaw(ofFeed));
    await done(this.ask(WebhooksApi).deleteWebhookRaw({ ...this.of, webhookId: webhook }));
  }
}
