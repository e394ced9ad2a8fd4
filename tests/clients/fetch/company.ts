// What the two companies have in common: a client, how answers are taken, and what is asked of the asset that one sells to the other.

import assert from "node:assert/strict";
import createClient from "openapi-fetch";
import type { components, paths } from "./schema.js";

export type Schemas = components["schemas"];

/** Matches of 2025 in which the home team scored three times at least: by an asset's parameters, and by a feed's filters. */
export const params = { at_least: 2.5, season: 2025 };
export const query = { at_least: "2.5", season: "2025" };
export const filters = { "home_goals[gte]": "3", season: "2025" };

export class Company {
  readonly client;
  readonly path;

  constructor(readonly baseUrl: string, readonly id: string, key: string) {
    this.client = this.by(key);
    this.path = { company_id: id };
  }

  by(key: string) {
    // A feed has five media types: without one named a page would be of all their types.
    return createClient<paths, "application/json">({
      baseUrl: this.baseUrl,
      headers: { "x-api-key": key },
      // As the document says; openapi-fetch would write `filters[season]=`.
      querySerializer: { object: { style: "form", explode: true } },
    });
  }
}

/** The answer, unless it is a refusal. */
export function right<T>(answer: { data?: T; error?: Schemas["Problem"] }): T {
  assert.equal(answer.error, undefined, JSON.stringify(answer.error));
  assert.ok(answer.data !== undefined);
  return answer.data;
}

export function refused(answer: { error?: Schemas["Problem"] }, code: string): Schemas["Problem"]["error"] {
  assert.equal(answer.error?.error.code, code, JSON.stringify(answer));
  return answer.error.error;
}

export function done(answer: { error?: Schemas["Problem"]; response: Response }): void {
  assert.equal(answer.response.status, 204, JSON.stringify(answer.error));
}
