// What a seller does: a connection, a feed and an asset of it, their prices, a webhook, the books, and the end of it.

import assert from "node:assert/strict";
import { Company, done, params, refused, right, type Schemas } from "./company.js";

type Asset = Schemas["Asset"];
type Feed = Schemas["Endpoint"];
type Connection = Schemas["Connection"];
type Table = Schemas["CatalogTable"];

export class Seller extends Company {
  async connects(): Promise<[Connection, Table]> {
    const engines = right(await this.client.GET("/storage-engines")).data;
    const sqlite = engines.find((engine) => engine.slug === "sqlite");
    assert.ok(sqlite);
    const files = right(await this.client.GET("/companies/{company_id}/files", { params: { path: this.path } })).data;
    const body = {
      engine_id: sqlite.id,
      name: "By openapi-fetch",
      credential_type: "NONE",
      credentials: "{}",
      database: files[0]!.name,
    } as const;
    const connection = right(
      await this.client.POST("/companies/{company_id}/connections", { params: { path: this.path }, body }),
    ).data;
    const at = { params: { path: { ...this.path, connection_id: connection.id } } };
    const report = right(await this.client.POST("/companies/{company_id}/connections/{connection_id}/test", at)).data;
    assert.ok(report.success);
    const catalog = right(await this.client.GET("/companies/{company_id}/connections/{connection_id}/schema", at)).data;
    return [connection, catalog.schemas[0]!.tables[0]!];
  }

  private ofFeed(feed: Feed) {
    return { params: { path: { ...this.path, endpoint_id: feed.id } } };
  }

  private ofAsset(asset: Asset) {
    return { params: { path: { ...this.path, asset_id: asset.id } } };
  }

  async offersAFeed(connection: Connection, table: Table): Promise<Feed> {
    assert.ok(table.fields);
    const columns = table.fields.map((field) => field.name);
    const body: Schemas["EndpointIn"] = {
      connection_id: connection.id,
      name: "Matches, fed by openapi-fetch",
      source: { schema: "main", table: table.name },
      fields: [
        ...columns.filter((name) => name !== "home_team").map((name) => ({ name })),
        { name: "home_team", alias: "host", description: "Who plays at home." },
      ],
      filters: ["season", { field: "home_goals", operators: ["gte", "in"] }],
      order_by: ["id"],
      sorts: [{ name: "goals", order_by: ["-home_goals", { field: "id", direction: "asc" }] }],
    };
    const made = right(await this.client.POST("/companies/{company_id}/endpoints", { params: { path: this.path }, body })).data;
    assert.deepEqual([made.status, made.price_credits], ["draft", null]);
    const at = this.ofFeed(made);
    const patch = { description: "All of them.", default_limit: 4, max_limit: 50, tags: ["matches"] };
    const changed = right(
      await this.client.PATCH("/companies/{company_id}/endpoints/{endpoint_id}", { ...at, body: patch }),
    ).data;
    assert.deepEqual([changed.name, changed.max_limit, changed.tags], [made.name, 50, ["matches"]]);
    assert.deepEqual(changed.filters, body.filters);
    assert.equal(changed.sorts[0]?.order_by[0]?.direction, "desc");
    const tested = right(await this.client.GET("/companies/{company_id}/endpoints/{endpoint_id}/test", at)).data;
    assert.deepEqual([tested.rows[0]?.id, tested.fields.length], [1, columns.length]);
    const price = right(
      await this.client.POST("/companies/{company_id}/endpoints/{endpoint_id}/prices", { ...at, body: { price_credits: 2 } }),
    ).data;
    assert.deepEqual([price.endpoint_id, price.price_usd, price.is_active], [made.id, 1, true]);
    const published = right(await this.client.POST("/companies/{company_id}/endpoints/{endpoint_id}/publish", at)).data;
    assert.deepEqual([published.status, published.price_credits], ["published", 2]);
    const routes = right(
      await this.client.GET("/companies/{company_id}/endpoints/{endpoint_id}/available-endpoints", at),
    ).data;
    const told = right(await this.client.GET("/companies/{company_id}/endpoints/{endpoint_id}/url", at)).data;
    assert.equal(routes.find((route) => route.name === "data")?.url, told.url);
    return published;
  }

  async offersAnAsset(connection: Connection, table: Table): Promise<Asset> {
    const body: Schemas["AssetIn"] = {
      connection_id: connection.id,
      asset_type: "CALCULATION",
      name: "High wins at home, counted by openapi-fetch",
      sql_logic: `SELECT COUNT(*) FROM ${table.name} WHERE home_goals >= :at_least AND (:season IS NULL OR season = :season)`,
      parameters: [
        { name: "at_least", type: "number", minimum: 0, maximum: 20.5 },
        { name: "season", type: "integer", required: false, enum: [2024, 2025] },
      ],
    };
    const made = right(await this.client.POST("/companies/{company_id}/assets", { params: { path: this.path }, body })).data;
    assert.deepEqual(made.parameters, body.parameters);
    const at = this.ofAsset(made);
    const patch = { unit: "matches", category: "results" };
    const changed = right(await this.client.PATCH("/companies/{company_id}/assets/{asset_id}", { ...at, body: patch })).data;
    assert.deepEqual([changed.unit, changed.name, changed.price_credits], ["matches", made.name, null]);
    const tested = right(await this.client.POST("/companies/{company_id}/assets/{asset_id}/test", { ...at, body: { params } }));
    assert.deepEqual([tested.meta.test, tested.meta.credits_used, tested.meta.billing_reason], [true, 0, "test"]);
    const allSeasons = { params: { ...at.params, query: { filters: { at_least: "2.5" } } } };
    const both = right(await this.client.GET("/companies/{company_id}/assets/{asset_id}/test", allSeasons)).data.answer_value;
    const one = tested.data.answer_value;
    assert.ok(typeof both === "number" && typeof one === "number" && both > one && one > 0, `${both} and ${one}`);
    const wrong = refused(await this.client.POST("/companies/{company_id}/assets/{asset_id}/test", at), "INVALID_PARAMETER");
    assert.deepEqual(wrong.details.errors?.map((error) => [error.field, error.code]), [["params.at_least", "required"]]);
    await this.prices(made);
    const published = right(
      await this.client.POST("/companies/{company_id}/assets/{asset_id}/publish", { ...at, body: { params } }),
    ).data;
    assert.deepEqual([published.status, published.price_credits], ["published", 3]);
    return published;
  }

  /** A price that holds; one that is to hold from tomorrow on is changed, then dropped. */
  private async prices(asset: Asset): Promise<void> {
    const at = this.ofAsset(asset);
    const active = () => this.client.GET("/companies/{company_id}/assets/{asset_id}/prices/active", at);
    const set = async (body: Schemas["PriceIn"]) =>
      right(await this.client.POST("/companies/{company_id}/assets/{asset_id}/prices", { ...at, body })).data;
    refused(await active(), "PRICE_NOT_FOUND");
    await set({ price_usd: 2.5 });
    const holds = await set({ price_credits: 3 });
    const tomorrow = new Date(Date.now() + 24 * 60 * 60 * 1000).toISOString();
    const planned = await set({ price_credits: 9, effective_from: tomorrow });
    const later = { params: { path: { ...at.params.path, price_id: planned.id } } };
    const dearer = right(
      await this.client.PATCH("/companies/{company_id}/assets/{asset_id}/prices/{price_id}", {
        ...later,
        body: { price_credits: 11 },
      }),
    ).data;
    assert.deepEqual([dearer.price_credits, dearer.price_usd, dearer.is_active], [11, 5.5, false]);
    const listed = right(await this.client.GET("/companies/{company_id}/assets/{asset_id}/prices", at));
    assert.deepEqual([listed.data.map((price) => price.price_credits), listed.meta.total], [[11, 3, 5], 3]);
    done(await this.client.DELETE("/companies/{company_id}/assets/{asset_id}/prices/{price_id}", later));
    const held = right(await active()).data;
    assert.deepEqual([held.id, held.effective_to], [holds.id, null]);
  }

  async listens(): Promise<string> {
    const body = { url: "https://hooks.example.com/souk", event_types: ["purchase.created"] } satisfies Schemas["WebhookIn"];
    const made = right(await this.client.POST("/companies/{company_id}/webhooks", { params: { path: this.path }, body })).data;
    assert.ok(made.secret);
    assert.deepEqual(made.event_types, body.event_types);
    const at = { params: { path: { ...this.path, webhook_id: made.id } } };
    // Not sent: nobody is there.
    const changed = right(
      await this.client.PATCH("/companies/{company_id}/webhooks/{webhook_id}", { ...at, body: { is_active: false } }),
    ).data;
    assert.ok(!changed.is_active && !changed.secret);
    assert.equal(right(await this.client.GET("/companies/{company_id}/webhooks/{webhook_id}/deliveries", at)).meta.total, 0);
    return made.id;
  }

  private async revenue(product: string): Promise<number> {
    const sales = right(
      await this.client.GET("/companies/{company_id}/sales", {
        params: { path: this.path, query: { group_by: "product" } },
      }),
    );
    return sales.data.find((row) => row.group === product)?.revenue_credits ?? 0;
  }

  async looksAtTheBooks(asset: Asset, feed: Feed, charged: number): Promise<void> {
    const ofCompany = { params: { path: this.path } };
    const byAsset = await this.revenue(asset.id);
    assert.equal(byAsset + (await this.revenue(feed.id)), charged);
    const figures = right(await this.client.GET("/companies/{company_id}/seller-dashboard", ofCompany)).data;
    assert.ok(figures.revenue_credits >= charged && figures.top_products.some((top) => top.product_id === asset.id));
    const runs = right(
      await this.client.GET("/companies/{company_id}/assets/{asset_id}/statistics", this.ofAsset(asset)),
    ).data;
    assert.deepEqual([runs.credits_earned, runs.unique_buyers], [byAsset, 1]);
    const stats = right(await this.client.GET("/companies/{company_id}/endpoints/{endpoint_id}/stats", this.ofFeed(feed)));
    assert.ok(stats.data.rows_served > 0);
    assert.ok(right(await this.client.GET("/companies/{company_id}/failed-executions", ofCompany)).meta.total >= 0);
    // Written within a second, behind the requests' backs.
    let newest = right(await this.client.GET("/companies/{company_id}/executions", ofCompany)).data;
    for (let tried = 0; tried < 100 && !newest.some((run) => run.billing === "charged"); tried++) {
      await new Promise((wake) => setTimeout(wake, 100));
      newest = right(await this.client.GET("/companies/{company_id}/executions", ofCompany)).data;
    }
    assert.ok(newest.some((run) => run.billing === "charged" && run.credits > 0 && run.class === null));
    const earned = right(await this.client.GET("/companies/{company_id}/earnings", ofCompany)).data;
    assert.ok(earned.gross_credits >= charged && earned.pending_usd > 0);
    const body = { type: "bank_account", account_holder: "Matchday Ltd", destination: "DE89370400440532013000" } as const;
    const method = right(await this.client.PUT("/companies/{company_id}/payout-method", { ...ofCompany, body })).data;
    assert.equal(method.destination_last4, "3000");
    const asked = await this.client.POST("/companies/{company_id}/payouts", {
      params: { path: this.path, header: { "Idempotency-Key": "fetch-payout" } },
      body: { amount_usd: 10_000 },
    });
    refused(asked, "PAYABLE_TOO_LOW");
    assert.deepEqual(right(await this.client.GET("/companies/{company_id}/payouts", ofCompany)).data, []);
  }

  async closes(asset: Asset, feed: Feed, webhook: string): Promise<void> {
    const [ofAsset, ofFeed] = [this.ofAsset(asset), this.ofFeed(feed)];
    const ofWebhook = { params: { path: { ...this.path, webhook_id: webhook } } };
    const unpublished = [
      right(await this.client.POST("/companies/{company_id}/assets/{asset_id}/unpublish", ofAsset)).data.status,
      right(await this.client.POST("/companies/{company_id}/endpoints/{endpoint_id}/unpublish", ofFeed)).data.status,
    ];
    assert.deepEqual(unpublished, ["unpublished", "unpublished"]);
    done(await this.client.DELETE("/companies/{company_id}/assets/{asset_id}", ofAsset));
    done(await this.client.DELETE("/companies/{company_id}/endpoints/{endpoint_id}", ofFeed));
    done(await this.client.DELETE("/companies/{company_id}/webhooks/{webhook_id}", ofWebhook));
  }
}
