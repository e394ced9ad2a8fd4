// What ClickHouse's own client of Node's makes of the front that these tests put before its engine: it takes it for a ClickHouse.
//
// `clickhouse.mjs judge BASE_URL`. Its modules are in SOUK_CLICKHOUSE_MODULES.

import assert from "node:assert/strict";
import { createRequire } from "node:module";

const { ClickHouseLogLevel, createClient } = createRequire(`${process.env.SOUK_CLICKHOUSE_MODULES}/`)("@clickhouse/client");

const [how, url] = process.argv.slice(2);
assert.equal(how, "judge");
const log = { level: ClickHouseLogLevel.OFF };
const client = (more = {}) => createClient({ url, username: "souk", password: "pässw'ord", log, ...more });
const one = client();

const ping = await one.ping();
assert.equal(ping.success, true, ping.error);

// Values: parameters with their types, whole numbers of 64 bits as the client asks for them, NULL, lists, times.
const asked = await one.query({
  query: `SELECT {a: Int32} + 1 AS a, {b: String} AS b, {c: Array(Nullable(UInt8))} AS c, {d: DateTime64(3)} AS d, {e: Nullable(String)} AS e,
    toUInt64('18446744073709551615') AS f, toDecimal64('12.340', 3) AS g, CAST(NULL AS Nullable(Int8)) AS h`,
  query_params: { a: 41, b: "it's ä\t日本\\", c: [1, null], d: new Date("2024-02-29T12:00:00.003Z"), e: null },
  format: "JSONEachRow",
  clickhouse_settings: { output_format_json_quote_64bit_integers: 1, output_format_json_quote_decimals: 1 },
});
assert.deepEqual(await asked.json(), [
  { a: "42", b: "it's ä\t日本\\", c: [1, null], d: "2024-02-29 12:00:00.003", e: null, f: "18446744073709551615", g: "12.34", h: null },
]);

// A table, by commands and rows that stream there and back.
await one.command({ query: "CREATE TABLE IF NOT EXISTS judged_js (n UInt64, t String) ENGINE = MergeTree ORDER BY n" });
const rows = Array.from({ length: 5000 }, (_, n) => ({ n: String(n), t: `row ${n}` }));
await one.insert({ table: "judged_js", values: rows, format: "JSONEachRow" });
const stream = await one.query({ query: "SELECT n, t FROM judged_js ORDER BY n", format: "JSONCompactEachRow" });
const read = [];
for await (const part of stream.stream()) for (const row of part) read.push(row.json());
assert.equal(read.length, 5000);
assert.equal(String(read[4999]), "4999,row 4999");
await one.command({ query: "DROP TABLE judged_js" });

// What is wrong is told by its number.
for (const [query, settings, code] of [
  ["SELECT nothing", {}, "47"],
  ["SELECT * FROM nowhere.nothing", {}, "81"],
  ["SELECT sleep(2)", { max_execution_time: 1 }, "159"],
  ["SELECT 1 +", {}, "62"],
]) {
  await assert.rejects(one.query({ query, clickhouse_settings: settings }).then((found) => found.text()), { code }, query);
}
const stranger = client({ password: "wrong" });
await assert.rejects(stranger.query({ query: "SELECT 1" }), { code: "516" });
await stranger.close();

// What is compressed is read.
const packed = client({ compression: { response: true } });
const long = await packed.query({ query: "SELECT number FROM numbers(10000)", format: "JSONEachRow" });
assert.equal((await long.json()).length, 10000);
await packed.close();

const version = await (await one.query({ query: "SELECT version() AS v", format: "JSONEachRow" })).json();
await one.close();
console.log("@clickhouse/client takes it for a ClickHouse", version[0].v);
