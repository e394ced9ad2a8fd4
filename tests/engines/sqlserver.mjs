// What tedious, the client of Node's that Microsoft recommends, makes of the SQL Server of the tests.
//
// `sqlserver.mjs judge PORT CA_FILE USER WRITER PASSWORD DATABASE`: it takes tests/src/sqlserver for a SQL Server, over TDS 7.4 with TLS in packets and over TDS 8.0
// within TLS. Its modules are in SOUK_SQLSERVER_MODULES.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const { Connection, Request, TYPES } = createRequire(`${process.env.SOUK_SQLSERVER_MODULES}/`)("tedious");

const [how, port, caFile, user, writer, password, database] = process.argv.slice(2);
assert.equal(how, "judge");
const ca = readFileSync(caFile, "utf8");

function connected(encrypt, more = {}) {
  const config = {
    server: "localhost",
    authentication: { type: "default", options: { userName: more.user ?? user, password: more.password ?? password } },
    options: {
      port: Number(port), encrypt, database: more.database ?? database, trustServerCertificate: false, cryptoCredentialsDetails: { ca },
      useUTC: true, readOnlyIntent: true, rowCollectionOnRequestCompletion: true, requestTimeout: more.timeout ?? 15000,
    },
  };
  return new Promise((resolve, reject) => {
    const connection = new Connection(config);
    connection.on("connect", (error) => (error ? reject(error) : resolve(connection)));
    connection.on("error", () => {});
    connection.connect();
  });
}

function asked(connection, text, values = [], begun = () => {}) {
  return new Promise((resolve, reject) => {
    const request = new Request(text, (error, _, rows) => (error ? reject(error) : resolve(rows.map((row) => row.map((cell) => cell.value)))));
    for (const [name, type, value, options] of values) request.addParameter(name, type, value, options);
    connection.execSql(request);
    begun(request);
  });
}

const call = (connection, name, ...before) => new Promise((resolve, reject) => connection[name](...before, (error) => (error ? reject(error) : resolve())));

for (const encrypt of [true, "strict"]) {
  const one = await connected(encrypt);
  const [row] = await asked(
    one,
    `SELECT CAST('9223372036854775807' AS bigint) AS i, CAST(1 AS bit) AS t, CAST(0.5 AS float) AS f, N'it''s ä 日本' AS s, CAST('grüße €' AS varchar(20)) AS v,
     CAST(N'ü' AS utf8) AS q, 0xFF00 AS y, CAST('2024-02-29' AS date) AS d, CAST('2024-02-29T12:00:00.003' AS datetime) AS e, CAST('2024-02-29T12:00:00.001' AS datetime2(7)) AS l,
     CAST('2024-02-29T12:00:00+01:00' AS datetimeoffset(3)) AS z, CAST('A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11' AS uniqueidentifier) AS u, CAST(N'<a/>' AS xml) AS x,
     CAST(N'long' AS nvarchar(max)) AS m, CAST('1.50' AS decimal(10, 2)) AS n, CAST('-1.5' AS money) AS c, CAST(7 AS sql_variant) AS o, CAST('text' AS text) AS w, CAST(NULL AS int) AS k,
     CAST('2079-06-06T23:59:00' AS smalldatetime) AS h`,
  );
  assert.deepEqual(row, [
    "9223372036854775807", true, 0.5, "it's ä 日本", "grüße €", "ü", Buffer.from([0xff, 0]), new Date("2024-02-29T00:00:00Z"), new Date("2024-02-29T12:00:00.003Z"),
    new Date("2024-02-29T12:00:00.001Z"), new Date("2024-02-29T11:00:00Z"), "A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11", "<a/>", "long", 1.5, -1.5, 7, "text", null,
    new Date("2079-06-06T23:59:00Z"),
  ]);

  // Values, by a call: what comes back is what was sent.
  const values = [
    ["a", TYPES.BigInt, "-9223372036854775808"], ["b", TYPES.NVarChar, "a'b 日本"], ["c", TYPES.Bit, false], ["d", TYPES.Float, -0.5],
    ["e", TYPES.VarBinary, Buffer.from([1, 2])], ["f", TYPES.Decimal, 12.5, { precision: 10, scale: 2 }], ["g", TYPES.Int, null],
  ];
  const [echo] = await asked(one, "SELECT @a AS a, @b AS b, @c AS c, @d AS d, @e AS e, @f AS f, @g AS g", values);
  assert.deepEqual(echo, ["-9223372036854775808", "a'b 日本", false, -0.5, Buffer.from([1, 2]), 12.5, null]);
  assert.deepEqual(await asked(one, "SELECT id FROM dbo.stock WHERE id > @least ORDER BY id", [["least", TYPES.Int, 57]]), [[58], [59], [60]]);
  assert.equal((await asked(one, "SELECT value AS n FROM GENERATE_SERIES(1, 9000) AS s ORDER BY 1")).length, 9000);
  const long = await asked(one, "SELECT REPLICATE(CAST(N'ä' AS nvarchar(max)), 100001) AS v");
  assert.equal(long[0][0], "ä".repeat(100001));

  for (const [text, number] of [["SELECT absent FROM dbo.stock", 207], ["SELECT * FROM dbo.absent", 208], ["DELETE FROM dbo.stock", 229], ["SELECT 1 / 0 AS v", 8134]]) {
    await assert.rejects(asked(one, text), (error) => error.number === number);
  }

  // What is cancelled ends, in the middle of a message, and the session goes on.
  await assert.rejects(asked(one, "SELECT id FROM endless", [], () => setTimeout(() => one.cancel(), 300)), { code: "ECANCEL" });
  assert.deepEqual(await asked(one, "SELECT 7 AS v"), [[7]]);
  // A session that is begun anew has no transaction.
  await call(one, "beginTransaction");
  await call(one, "reset");
  assert.deepEqual(await asked(one, "SELECT @@TRANCOUNT AS n"), [[0]]);
  one.close();

  const two = await connected(encrypt, { user: writer });
  await call(two, "beginTransaction");
  await asked(two, "DELETE FROM dbo.stock WHERE id = 59");
  await call(two, "rollbackTransaction");
  assert.deepEqual(await asked(two, "SELECT COUNT(*) AS n FROM dbo.stock"), [["60"]]);
  two.close();

  await assert.rejects(connected(encrypt, { password: "wrong" }), { code: "ELOGIN" });
  await assert.rejects(connected(encrypt, { database: "nowhere" }));
}
const { version } = createRequire(`${process.env.SOUK_SQLSERVER_MODULES}/`)("tedious/package.json");
console.log("tedious", version, "takes it for a SQL Server");
