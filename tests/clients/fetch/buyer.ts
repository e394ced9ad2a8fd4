// What a buyer does: looks around, buys, runs an asset and reads a feed, goes over the bill, and leaves.

import assert from "node:assert/strict";
import { Company, done, filters, params, query, refused, right, type Schemas } from "./company.js";

type Asset = Schemas["Asset"];
type Feed = Schemas["Endpoint"];
type Purchase = Schemas["Purchase"];

export class Buyer extends Company {
  async balance(): Promise<number> {
    return right(await this.client.GET("/companies/{company_id}/credits", { params: { path: this.path } })).data.balance_credits;
  }

  product(id: string) {
    return this.client.GET("/marketplace/products/{product_id}", { params: { path: { product_id: id } } });
  }

  private async preview(id: string) {
    return right(await this.client.GET("/marketplace/products/{product_id}/preview", { params: { path: { product_id: id } } }));
  }

  async finds(asset: Asset, feed: Feed): Promise<void> {
    const listed = right(
      await this.client.GET("/marketplace/products", {
        params: { query: { q: "counted openapi", product_type: "asset" } },
      }),
    ).data;
    assert.deepEqual(listed.map((product) => product.id), [asset.id]);
    const product = right(await this.product(asset.id)).data;
    assert.deepEqual([product.price_credits, product.price_usd, product.billing_unit], [3, 1.5, "execution"]);
    assert.deepEqual([product.product_type, product.access.purchased, product.fields], ["asset", false, undefined]);
    const fed = right(await this.product(feed.id)).data;
    assert.deepEqual([fed.fields?.at(-1)?.name, fed.sport], ["host", null]);
    const insight = await this.preview(asset.id);
    assert.ok("asset_id" in insight.data && insight.meta?.preview);
    assert.deepEqual([typeof insight.data.answer_value, insight.data.execution_id], ["number", null]);
    const rows = await this.preview(feed.id);
    assert.ok("response" in rows.data && !rows.meta);
    assert.deepEqual([rows.data.response.data.length, rows.data.service.billing.reason], [3, "preview"]);
  }

  async buys(product: string): Promise<Purchase> {
    const buy = () =>
      this.client.POST("/companies/{company_id}/purchases", {
        params: { path: this.path },
        body: { product_id: product, accept_terms: true },
      });
    const [first, again] = [await buy(), await buy()];
    assert.deepEqual([first.response.status, again.response.status], [201, 200]);
    const purchase = right(first).data;
    assert.deepEqual([right(again).data.id, purchase.status], [purchase.id, "active"]);
    return purchase;
  }

  /** The same question in each of the ways in which it may be asked; all of them answer the same. */
  async runs(asset: Asset): Promise<number> {
    const path = { ...this.path, asset_id: asset.id };
    const named = { company_handle: asset.company_handle, asset_slug: asset.slug };
    const [body, byQuery] = [{ params }, { filters: query }];
    const execute = async () =>
      right(
        await this.client.POST("/companies/{company_id}/assets/{asset_id}/execute", {
          params: { path, header: { "Idempotency-Key": "fetch-path-1" } },
          body,
        }),
      );
    const ran = await execute();
    assert.equal((await execute()).data.execution_id, ran.data.execution_id);
    const answers = [
      ran,
      right(await this.client.POST("/analyze/{company_handle}/assets/{asset_slug}", { params: { path: named }, body })),
      right(
        await this.client.GET("/analyze/{company_handle}/assets/{asset_slug}", { params: { path: named, query: byQuery } }),
      ),
      right(await this.client.POST("/companies/{company_id}/assets/{asset_id}/process", { params: { path }, body })),
      right(await this.client.GET("/companies/{company_id}/assets/{asset_id}/process", { params: { path, query: byQuery } })),
    ];
    const value = ran.data.answer_value;
    assert.ok(typeof value === "number");
    for (const answer of answers) {
      assert.deepEqual([answer.data.answer_value, answer.data.unit, answer.meta.credits_used], [value, "matches", 3]);
    }
    return value;
  }

  /** All pages, by their cursors; then the first again, which the client has already. */
  async reads(feed: Feed, key: string): Promise<unknown[]> {
    const reader = this.by(key);
    const path = { company_handle: feed.company_handle, endpoint_slug: feed.slug };
    const ids = [];
    let cursor: string | undefined;
    do {
      const page = right(
        await reader.GET("/endpoints/v1/{company_handle}/{endpoint_slug}", {
          params: { path, query: { filters, sort: "goals", limit: 2, fields: "id,home_goals", cursor } },
        }),
      ).data;
      const rows = page.response.data;
      assert.ok(rows.every((row) => Number(row.home_goals) >= 3 && Object.keys(row).length === 2));
      ids.push(...rows.map((row) => row.id));
      const paging = page.service.pagination;
      assert.equal(paging?.has_more, Boolean(paging?.next_cursor));
      cursor = paging?.next_cursor ?? undefined;
    } while (cursor);
    const first = await reader.GET("/endpoints/v1/{company_handle}/{endpoint_slug}", { params: { path, query: { limit: 1 } } });
    const same = await reader.GET("/endpoints/v1/{company_handle}/{endpoint_slug}", {
      params: { path, query: { limit: 1 }, header: { "If-None-Match": first.response.headers.get("etag")! } },
    });
    assert.equal(same.response.status, 304);
    return ids;
  }

  /** What was charged since: by the balance, by the lines of the ledger and by the purchase, which agree. */
  async looksAtTheBooks(bought: Purchase, had: number): Promise<number> {
    const charged = had - (await this.balance());
    const charges = { type: "charge", product_id: bought.product_id, per_page: 100 } as const;
    const lines = right(
      await this.client.GET("/companies/{company_id}/credits/transactions", { params: { path: this.path, query: charges } }),
    ).data;
    assert.ok(lines.length > 0 && lines.every((line) => line.type === "charge" && line.reversal_of === null));
    const path = { ...this.path, transaction_id: lines[0]!.id };
    const line = right(
      await this.client.GET("/companies/{company_id}/credits/transactions/{transaction_id}", { params: { path } }),
    ).data;
    assert.deepEqual(line, lines[0]);
    const purchases = right(
      await this.client.GET("/companies/{company_id}/purchases", { params: { path: this.path, query: { status: "active" } } }),
    ).data;
    const spent = purchases.find((purchase) => purchase.id === bought.id);
    const sum = -lines.reduce((sum, line) => sum + line.amount_credits, 0);
    assert.deepEqual([sum, spent?.credits_spent], [charged, charged]);
    return charged;
  }

  async leaves(bought: Purchase, feed: Feed, key: string): Promise<void> {
    const at = { params: { path: { ...this.path, purchase_id: bought.id } } };
    const kept = right(await this.client.POST("/companies/{company_id}/purchases/{purchase_id}/access", at)).data.endpoint_key;
    assert.deepEqual([kept?.status, kept?.key.slice(0, 7)], ["active", "ep_****"]);
    await this.cancels(bought);
    const late = await this.by(key).GET("/endpoints/v1/{company_handle}/{endpoint_slug}", {
      params: { path: { company_handle: feed.company_handle, endpoint_slug: feed.slug } },
    });
    refused(late, "API_KEY_DEACTIVATED");
  }

  async cancels(bought: Purchase): Promise<void> {
    const path = { ...this.path, purchase_id: bought.id };
    done(await this.client.DELETE("/companies/{company_id}/purchases/{purchase_id}", { params: { path } }));
  }
}
