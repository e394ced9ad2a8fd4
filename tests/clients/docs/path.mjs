// What a reader does at /docs, in Chromium: gives a key, opens operations, sends requests from the page and reads the answers there.
//
//     node path.mjs READY_FILE CHROMIUM
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import puppeteer from "puppeteer-core";

const [readyFile, executablePath] = process.argv.slice(2);
const { base_url: host, seller } = JSON.parse(readFileSync(readyFile, "utf8"));
const patience = 60_000;
// Root has no sandbox of its own to give; the page is the host's that was just started.
const browser = await puppeteer.launch({ executablePath, args: ["--no-sandbox"], timeout: patience });
const page = await browser.newPage();
page.setDefaultTimeout(patience);

const complaints = [];
const elsewhere = new Set();
page.on("pageerror", (error) => complaints.push(error.message));
page.on("console", (message) => {
  // A refusal that is asked for below is one in the console, too.
  if (message.type() === "error" && !message.text().includes("status of 4")) complaints.push(message.text());
});
page.on("request", (request) => {
  const { origin, protocol } = new URL(request.url());
  if (protocol !== "data:" && origin !== host) elsewhere.add(origin);
});

// Opens an operation, fills its path in, sends it, and answers what the page shows of the answer.
async function send(tag, operation, path = {}, body) {
  const block = `#operations-${tag}-${operation}`;
  if (!(await page.$(block))) {
    await page.click(`#operations-tag-${tag} button.expand-operation`);
  }
  const summary = await page.waitForSelector(`${block} .opblock-summary-control`);
  await summary.click();
  await page.waitForSelector(`${block} button.execute`);
  for (const [name, value] of Object.entries(path)) {
    const input = await page.waitForSelector(`${block} tr[data-param-name="${name}"] input`);
    await input.click({ clickCount: 3 });
    await input.type(value);
  }
  if (body !== undefined) {
    const text = await page.waitForSelector(`${block} textarea.body-param__text`);
    await text.click({ clickCount: 3 });
    await page.keyboard.down("Control");
    await page.keyboard.press("a");
    await page.keyboard.up("Control");
    await text.type(JSON.stringify(body));
  }
  await page.click(`${block} button.execute`);
  const answer = `${block} .live-responses-table .response`;
  await page.waitForSelector(answer);
  const status = await page.$eval(`${answer} .response-col_status`, (cell) => cell.textContent.trim());
  const shown = await page.$eval(`${answer} .response-col_description`, (cell) => cell.textContent);
  await summary.click();
  return { status: Number.parseInt(status, 10), shown };
}

try {
  await page.goto(`${host}/docs`, { waitUntil: "networkidle0" });
  await page.waitForSelector(".opblock-tag-section");
  const document = await (await fetch(`${host}/openapi.json`)).json();
  const tags = await page.$$eval(".opblock-tag-section .opblock-tag", (found) => found.map((tag) => tag.dataset.tag));
  assert.deepEqual(tags, document.tags.map((tag) => tag.name));

  const anonymous = await send("Companies", "my_company");
  assert.equal(anonymous.status, 401);
  assert.match(anonymous.shown, /MISSING_API_KEY/);

  await page.click("button.authorize");
  const key = await page.waitForSelector(".auth-container input[type=text]");
  await key.type(seller.api_key);
  await page.click(".auth-btn-wrapper button.authorize");
  await page.click(".auth-btn-wrapper button.btn-done");

  const own = await send("Companies", "my_company");
  assert.equal(own.status, 200);
  assert.ok(own.shown.includes(seller.company_id));

  const name = "made in a browser";
  const made = await send("API_keys", "create_key", { company_id: seller.company_id }, { name, role_id: 1 });
  assert.equal(made.status, 201);
  const listed = await fetch(`${host}/companies/${seller.company_id}/api-keys`, { headers: { "x-api-key": seller.api_key } });
  assert.ok((await listed.json()).data.some((key) => key.name === name));

  // As the example has it, without a word changed.
  const example = await send("Webhooks", "create_webhook", { company_id: seller.company_id });
  assert.equal(example.status, 201, example.shown);

  assert.deepEqual(complaints, []);
  assert.deepEqual([...elsewhere], []);
  console.log(`docs: ${tags.length} tags; ${made.status} to what was sent from the page, nothing asked elsewhere`);
} catch (error) {
  console.error(complaints);
  await page.screenshot({ path: "docs.png" });
  throw error;
} finally {
  await browser.close();
}
