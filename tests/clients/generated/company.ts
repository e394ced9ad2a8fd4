// What the two companies have in common: the parts of the client, and what is asked of the asset that one sells to the other.

import assert from "node:assert/strict";
import { Configuration, ResponseError, type ApiResponse, type Problem } from "./client/index.js";

/** Matches of 2025 in which the home team scored three times at least: by an asset's parameters, and by a feed's filters. */
export const params = { at_least: 2.5, season: 2025 };
export const query = { at_least: "2.5", season: "2025" };
export const filters = { "home_goals[gte]": "3", season: "2025" };

/** The API of one tag. */
type Part<T> = new (configuration: Configuration) => T;

export class Company {
  private readonly configuration;

  constructor(readonly baseUrl: string, readonly id: string, key: string) {
    this.configuration = this.by(key);
  }

  by(key: string): Configuration {
    return new Configuration({ basePath: this.baseUrl, apiKey: (name) => (name === "x-api-key" ? key : "") });
  }

  ask<T>(part: Part<T>): T {
    return new part(this.configuration);
  }
}

/** This generator throws what is refused. */
export async function refused(answer: Promise<unknown>, code: string): Promise<Problem["error"]> {
  const error = await answer.then(() => assert.fail(`not refused with ${code}`), (error) => error);
  assert.ok(error instanceof ResponseError, String(error));
  const problem: Problem = await error.response.json();
  assert.equal(problem.error.code, code, JSON.stringify(problem));
  return problem.error;
}

export async function done(answer: Promise<ApiResponse<void>>): Promise<void> {
  assert.equal((await answer).raw.status, 204);
}
