// The dashboard in a real browser.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { chromium, firefox } from "playwright-core";
import { World, canBeApart } from "./world.mjs";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const pictures = process.env.PICTURES;
// What is shown must change within a second; a loaded machine gets more.
const SOON = Number(process.env.SOON_MS ?? 10000);

let browser;
before(async () => {
  const executablePath = process.env.BROWSER;
  // A Firefox as it is handed out, not one that was made for playwright.
  browser = executablePath.includes("firefox")
    ? await firefox.launch({ executablePath, channel: "moz-firefox" })
    : await chromium.launch({ executablePath, args: ["--no-sandbox"] });
});
after(() => browser?.close());

/// Opens the page; fails the test on any error of a script or the policy.
async function open(url, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  const page = await context.newPage();
  const errors = [];
  page.on("pageerror", (error) => errors.push(String(error)));
  page.on("console", (message) => message.type() === "error" && errors.push(message.text()));
  page.on("dialog", (dialog) => (errors.push(`a dialog: ${dialog.message()}`), dialog.dismiss()));
  await page.goto(url);
  return { page, context, errors };
}

async function checkAccessible(page, what) {
  // The policy forbids other scripts in the page, so this runs beside it.
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => axe.run(document, { resultTypes: ["violations"] }));
  const serious = violations.filter(({ impact }) => impact === "serious" || impact === "critical");
  assert.deepEqual(serious.map(({ id, nodes }) => [id, nodes.map(({ html }) => html.slice(0, 200))]), [], what);
}

async function picture(page, name) {
  if (!pictures) return;
  await page.screenshot({ path: `${pictures}/${name}.png`, fullPage: true });
}

/// How many wait, by the title.
const waiting = async (page) => Number((await page.title()).match(/^\((\d+)\)/)?.[1] ?? 0);

const row = (page, session) => page.locator(`[data-id="${session.id}"]`);

describe("the dashboard", () => {
  let world, server;
  before(async () => {
    world = new World();
    server = await world.serve(process.env.WHOSUP, ["--allow-actions"]);
  });
  after(() => world?.end());

  test("an empty machine is explained, and the address keeps no token", { skip: !canBeApart && !process.env.ALONE && "no PID namespace can be made here" }, async (t) => {
    // Agents of others would be on the page.
    const nobody = new World();
    t.after(() => nobody.end());
    const { url } = await nobody.serve(process.env.WHOSUP, [], canBeApart);
    const { page, context, errors } = await open(url);
    await page.getByText("No session is live").waitFor({ timeout: SOON });
    assert.equal(new URL(page.url()).hash, "");
    await checkAccessible(page, "empty");
    await picture(page, "empty-wide-light");
    assert.deepEqual(errors, []);
    await context.close();
  });

  test("who has no token is asked for it", async () => {
    const { page, context } = await open(server.url.split("#")[0]);
    await page.getByText("This page needs the token").waitFor({ timeout: SOON });
    await checkAccessible(page, "no token");
    await page.getByLabel("Token").fill(server.url);
    await page.getByRole("button", { name: "Connect" }).click();
    await page.locator('#connection[data-state="open"]').waitFor({ timeout: SOON });
    await context.close();
  });

  test("rows appear, change and die where they are, within a second", async () => {
    const { page, context, errors } = await open(server.url);
    await page.locator('#connection[data-state="open"]').waitFor({ timeout: SOON });
    const session = await world.start({ title: "Fix the flaky login test", status: "busy" });
    await row(page, session).waitFor({ timeout: SOON });
    assert.equal(await row(page, session).getAttribute("data-state"), "working");
    await row(page, session).evaluate((element) => (element.isSame = true));

    const before = await waiting(page);
    let began = Date.now();
    world.record(session, "waiting", 0, { waitingFor: "permission prompt" });
    await page.locator(`[data-id="${session.id}"][data-state="waiting"]`).waitFor({ timeout: SOON });
    console.log(`waiting after ${Date.now() - began} ms`);
    assert.equal(await waiting(page), before + 1);
    assert.match(decodeURIComponent(await page.locator("#icon").getAttribute("href")), />[0-9+]+<\/text>/);

    began = Date.now();
    await world.kill(session);
    await page.locator(`[data-id="${session.id}"][data-state="died"]`).waitFor({ timeout: SOON });
    console.log(`died after ${Date.now() - began} ms`);
    assert.ok(await row(page, session).evaluate((element) => element.isSame), "the row is another one");
    assert.equal(await waiting(page), before);
    assert.match(await row(page, session).locator(".command").getAttribute("title"), /claude --resume/);

    await row(page, session).locator(".name").click();
    await row(page, session).getByRole("button", { name: "Dismiss" }).click();
    await row(page, session).waitFor({ state: "detached", timeout: SOON });
    assert.deepEqual(errors, []);
    await context.close();
  });

  test("a page whose token was replaced says so, and goes on with the new one", async () => {
    const session = await world.start({ title: "Rename the module", status: "idle" });
    const { page, context } = await open(server.url);
    await row(page, session).waitFor({ timeout: SOON });
    server.url = world.newToken(process.env.WHOSUP);
    // The server ends the stream within 15 s, and the page connects again after 2 s.
    await page.locator('#connection[data-state="refused"]').waitFor({ timeout: 20000 + SOON });
    assert.match(await page.locator("#connection").textContent(), /what is shown is \d+s old/);
    assert.match(await page.locator("#announce").textContent(), /not valid any more/);
    assert.equal(await page.locator("body.stale").count(), 1);
    await checkAccessible(page, "refused");
    await page.getByLabel("Token").fill(server.url);
    await page.getByRole("button", { name: "Connect" }).click();
    await page.locator('#connection[data-state="open"]').waitFor({ timeout: SOON });
    await page.locator("body:not(.stale)").waitFor({ timeout: SOON });
    assert.equal(await page.getByText("This page needs the token").count(), 0);
    await context.close();
    await world.kill(session);
    await dismiss(session);
  });

  test("texts of agents stay text", async () => {
    const hostile = [
      '<img src=x onerror="document.title=`owned`;alert(1)">',
      '"><svg/onload=alert(2)><script>alert(3)</script>',
      "javascript:alert(4)",
      "\u202Eright to left \u2067and\u2069 back",
      `${"very long ".repeat(400)}end`,
      "x".repeat(3000),
    ];
    const sessions = [];
    for (const title of hostile) sessions.push(await world.start({ title, directory: "src/<b>bold\u202E" }));
    const { page, context, errors } = await open(server.url);
    for (const session of sessions) await row(page, session).waitFor({ timeout: SOON });
    for (const session of sessions.slice(0, 3)) {
      await row(page, session).locator(".name").click();
      await row(page, session).locator(".message pre").first().waitFor({ timeout: SOON });
    }
    const shown = await row(page, sessions[0]).locator(".name").textContent();
    assert.ok(shown.includes("<img src=x"), shown);
    const facts = await row(page, sessions[0]).locator(".facts bdi").allTextContents();
    assert.ok(facts.length >= 2 && facts.some((fact) => fact.includes("\u202E")), facts.join());
    assert.equal(await page.locator("main img, main script, main a, main iframe, main b").count(), 0);
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    assert.ok(wide <= 0, `it is ${wide} too wide`);
    await page.waitForTimeout(300);
    assert.deepEqual(errors, []);
    await checkAccessible(page, "hostile texts");
    await picture(page, "hostile-wide-light");
    await page.setViewportSize({ width: 360, height: 800 });
    const narrow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    assert.ok(narrow <= 0, `it is ${narrow} too wide on a narrow screen`);
    await context.close();
    for (const session of sessions) await world.kill(session);
    await Promise.all(sessions.map((session) => dismiss(session)));
  });

  test("search, groups and keys find a session, and details show why", async () => {
    const one = await world.start({ title: "Add rate limits to the API", directory: "src/api", status: "waiting", since: 60000, more: { waitingFor: "permission prompt" } });
    const two = await world.start({ title: "Explain how invoices are numbered", directory: "src/billing" });
    const { page, context, errors } = await open(server.url);
    await row(page, two).waitFor({ timeout: SOON });
    await page.keyboard.press("/");
    await page.keyboard.type("invoices");
    await row(page, one).waitFor({ state: "detached", timeout: SOON });
    await page.keyboard.type(" and nothing");
    await page.getByText("Nothing fits").waitFor({ timeout: SOON });
    await page.getByRole("button", { name: "Show all sessions" }).click();
    await row(page, one).waitFor({ timeout: SOON });
    await page.getByLabel("Group by").selectOption("project");
    await page.locator("h2", { hasText: "src/billing" }).waitFor({ timeout: SOON });
    await page.getByLabel("Group by").selectOption("state");
    await page.locator("#search").blur();
    await page.keyboard.press("j");
    await page.keyboard.press("Enter");
    const opened = page.locator(".row.open");
    await opened.getByText("is live").first().waitFor({ timeout: SOON });
    assert.equal(await opened.count(), 1);
    await checkAccessible(page, "details");
    await picture(page, "details-wide-light");
    await page.keyboard.press("Escape");
    await opened.waitFor({ state: "detached", timeout: SOON });
    assert.deepEqual(errors, []);
    await context.close();
    for (const session of [one, two]) {
      await world.kill(session);
      await dismiss(session);
    }
  });

  test("a session is stopped once that was confirmed, and usage is summed up", async () => {
    const session = await world.start({ title: "Count what this costs", directory: "src/usage" });
    const { page, context, errors } = await open(server.url);
    await row(page, session).waitFor({ timeout: SOON });
    await row(page, session).locator(".name").click();
    await row(page, session).getByRole("button", { name: "Stop…" }).click();
    await row(page, session).getByRole("button", { name: "Keep it" }).click();
    assert.equal(session.child.exitCode ?? session.child.signalCode, null);
    await row(page, session).getByRole("button", { name: "Stop…" }).click();
    await checkAccessible(page, "stopping");
    // It has no pane, so that nothing can be typed into it.
    assert.equal(await row(page, session).locator(".send").count(), 0);
    await row(page, session).getByRole("button", { name: "Stop the process" }).click();
    // Who stops it does not want it among those that died.
    await row(page, session).waitFor({ state: "detached", timeout: SOON });

    await page.getByText("Usage today").click();
    await page.locator("#sums :is(table, .none)").first().waitFor({ timeout: SOON });
    await page.locator("#usage-by").selectOption("model");
    await page.locator("#sums tbody th", { hasText: "claude-sonnet-4-5" }).waitFor({ timeout: SOON });
    await checkAccessible(page, "usage");
    await picture(page, "usage-wide-light");
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    assert.ok(wide <= 0, `it is ${wide} too wide`);
    assert.deepEqual(errors, []);
    await context.close();
  });

  test("three and sixty sessions, wide and narrow, dark and light", async () => {
    const sessions = [];
    const titles = ["Fix the flaky login test", "Add rate limits to the public API", "Rebuild the search index without downtime", "Tidy up the release notes", "Upgrade the payment library"];
    const states = ["busy", "waiting", "idle"];
    const start = async (number) => {
      const status = states[number % states.length];
      const more = status === "waiting" ? { waitingFor: "permission prompt" } : {};
      sessions.push(await world.start({ title: titles[number % titles.length], directory: `src/${["shop", "api", "search", "docs"][number % 4]}`, status, since: number * 47000, more }));
    };
    for (const count of [3, 60]) {
      while (sessions.length < count) await start(sessions.length);
      for (const [width, size] of [["wide", { width: 1280, height: 900 }], ["narrow", { width: 390, height: 844 }]]) {
        for (const colorScheme of ["light", "dark"]) {
          const { page, context, errors } = await open(server.url, { viewport: size, colorScheme });
          await page.waitForFunction((count) => document.querySelectorAll(".row").length >= count, count, { timeout: SOON });
          await checkAccessible(page, `${count} ${width} ${colorScheme}`);
          const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
          assert.ok(wide <= 0, `it is ${wide} too wide`);
          await picture(page, `${count}-${width}-${colorScheme}`);
          assert.deepEqual(errors, []);
          await context.close();
        }
      }
    }
    const { page, context } = await open(server.url);
    await row(page, sessions[59]).waitFor({ timeout: SOON });
    server.child.kill("SIGKILL");
    await page.locator('#connection[data-state="lost"]').waitFor({ timeout: SOON });
    await checkAccessible(page, "reconnecting");
    await picture(page, "lost-wide-light");
    const address = new URL(server.url).host;
    server = await world.serve(process.env.WHOSUP, ["--listen", address]);
    await page.locator('#connection[data-state="open"]').waitFor({ timeout: 3 * SOON });
    assert.equal(await page.locator(".row").count() >= 60, true);
    await context.close();
  });

  async function dismiss({ id }) {
    const { origin, hash } = new URL(server.url);
    await fetch(`${origin}/api/v1/sessions/claude-code/${id}/dismiss`, { method: "POST", headers: { Authorization: `Bearer ${hash.slice(7)}`, "Content-Type": "application/json" } });
  }
});
