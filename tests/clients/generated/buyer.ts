// What a buyer does: looks around, buys, runs an asset and reads a feed, goes over the bill, and leaves.

import assert from "node:assert/strict";
import {
  AssetsApi,
  CreditsApi,
  DataApi,
  MarketplaceApi,
  PurchasesApi,
  ResponseError,
  type Asset,
  type Endpoint,
  type Product,
  type Purchase,
} from "./client/index.js";
import { Company, done, filters, params, query, refused } from "./company.js";

export class Buyer extends Company {
  private readonly of = { companyId: this.id };

  async balance(): Promise<number> {
    return (await this.ask(CreditsApi).getCredits(this.of)).data.balanceCredits;
  }

  async product(productId: string): Promise<Product> {
    return (await this.ask(MarketplaceApi).getProduct({ productId })).data;
  }

  async finds(asset: Asset, feed: Endpoint): Promise<void> {
    const market = this.ask(MarketplaceApi);
    const listed = (await market.listProducts({ q: "counted generated", productType: "asset" })).data;
    assert.deepEqual(listed.map((product) => product.id), [asset.id]);
    const product = await this.product(asset.id);
    assert.deepEqual([product.priceCredits, product.priceUsd, product.billingUnit], [3, 1.5, "execution"]);
    assert.deepEqual([product.productType, product.access.purchased, product.fields], ["asset", false, undefined]);
    const fed = await this.product(feed.id);
    assert.deepEqual([fed.fields?.at(-1)?.name, fed.sport], ["host", null]);
    const insight = await market.previewProduct({ productId: asset.id });
    assert.ok("assetId" in insight.data && insight.meta?.preview);
    assert.deepEqual([typeof insight.data.answerValue, insight.data.executionId], ["number", null]);
    const rows = await market.previewProduct({ productId: feed.id });
    assert.ok("response" in rows.data && !rows.meta);
    assert.deepEqual([rows.data.response.data.length, rows.data.service.billing.reason], [3, "preview"]);
  }

  async buys(productId: string): Promise<Purchase> {
    const buy = () =>
      this.ask(PurchasesApi).createPurchaseRaw({ ...this.of, purchaseIn: { productId, acceptTerms: true } });
    const [first, again] = [await buy(), await buy()];
    assert.deepEqual([first.raw.status, again.raw.status], [201, 200]);
    const purchase = (await first.value()).data;
    assert.deepEqual([(await again.value()).data.id, purchase.status], [purchase.id, "active"]);
    return purchase;
  }

  /** The same question in each of the ways in which it may be asked; all of them answer the same. */
  async runs(asset: Asset): Promise<number> {
    const assets = this.ask(AssetsApi);
    const at = { ...this.of, assetId: asset.id };
    const named = { companyHandle: asset.companyHandle, assetSlug: asset.slug };
    const executeIn = { params };
    const once = { ...at, executeIn, idempotencyKey: "generated-path-1" };
    const ran = await assets.executeAsset(once);
    assert.equal((await assets.executeAsset(once)).data.executionId, ran.data.executionId);
    const answers = [
      ran,
      await assets.analyze({ ...named, executeIn }),
      await assets.analyzeByQuery({ ...named, filters: query }),
      await assets.processAsset({ ...at, executeIn }),
      await assets.processAssetByQuery({ ...at, filters: query }),
    ];
    const value = ran.data.answerValue;
    assert.ok(typeof value === "number");
    for (const answer of answers) {
      assert.deepEqual([answer.data.answerValue, answer.data.unit, answer.meta.creditsUsed], [value, "matches", 3]);
    }
    return value;
  }

  /** All pages, by their cursors; then the first again, which the client has already. */
  async reads(feed: Endpoint, key: string): Promise<unknown[]> {
    const reader = new DataApi(this.by(key));
    const at = { companyHandle: feed.companyHandle, endpointSlug: feed.slug };
    const ids = [];
    let cursor: string | undefined;
    do {
      const asked = { ...at, filters, sort: "goals", limit: 2, fields: "id,home_goals", cursor };
      const page = (await reader.fetchDataByHandle(asked)).data;
      const rows = page.response.data;
      assert.ok(rows.every((row) => row.home_goals >= 3 && Object.keys(row).length === 2));
      ids.push(...rows.map((row) => row.id));
      const paging = page.service.pagination;
      assert.equal(paging?.hasMore, Boolean(paging?.nextCursor));
      cursor = paging?.nextCursor ?? undefined;
    } while (cursor);
    const first = await reader.fetchDataByHandleRaw({ ...at, limit: 1 });
    const ifNoneMatch = first.raw.headers.get("etag")!;
    // To this generator whatever is no 2xx is an error.
    const same = await reader.fetchDataByHandleRaw({ ...at, limit: 1, ifNoneMatch }).catch((error) => error);
    assert.ok(same instanceof ResponseError && same.response.status === 304);
    return ids;
  }

  /** What was charged since: by the balance, by the lines of the ledger and by the purchase, which agree. */
  async looksAtTheBooks(bought: Purchase, had: number): Promise<number> {
    const credits = this.ask(CreditsApi);
    const charged = had - (await this.balance());
    const charges = { ...this.of, type: "charge", productId: bought.productId, perPage: 100 } as const;
    const lines = (await credits.listTransactions(charges)).data;
    assert.ok(lines.length > 0 && lines.every((line) => line.type === "charge" && line.reversalOf === null));
    const line = (await credits.getTransaction({ ...this.of, transactionId: lines[0]!.id })).data;
    assert.deepEqual(line, lines[0]);
    const purchases = (await this.ask(PurchasesApi).listPurchases({ ...this.of, status: "active" })).data;
    const spent = purchases.find((purchase) => purchase.id === bought.id);
    const sum = -lines.reduce((sum, line) => sum + line.amountCredits, 0);
    assert.deepEqual([sum, spent?.creditsSpent], [charged, charged]);
    return charged;
  }

  async leaves(bought: Purchase, feed: Endpoint, key: string): Promise<void> {
    const at = { ...this.of, purchaseId: bought.id };
    const kept = (await this.ask(PurchasesApi).accessPurchase(at)).data.endpointKey;
    assert.deepEqual([kept?.status, kept?.key.slice(0, 7)], ["active", "ep_****"]);
    await this.cancels(bought);
    const reader = new DataApi(this.by(key));
    const late = reader.fetchDataByHandle({ companyHandle: feed.companyHandle, endpointSlug: feed.slug });
    await refused(late, "API_KEY_DEACTIVATED");
  }

  async cancels(bought: Purchase): Promise<void> {
    await done(this.ask(PurchasesApi).cancelPurchaseRaw({ ...this.of, purchaseId: bought.id }));
  }
}
