// Takes the picture of the dashboard that the documents have.
//
// What a process did before it began counts as over: so all ages are those of the picture.
//
// Usage, as any user without agents: WHOSUP=… BROWSER=… node picture.mjs FILE

import { chromium } from "playwright-core";
import { World } from "./world.mjs";

const MINUTE = 60000;
const world = new World();
const browser = await chromium.launch({ executablePath: process.env.BROWSER, args: ["--no-sandbox"] });

/// What hooks reported: minutes ago, and what.
function log({ id }, events) {
  const lines = events.map(([minutes, event], at) => JSON.stringify({ id: String(at), at: new Date(Date.now() - minutes * MINUTE).toISOString(), event, home: `${world.home}/.claude` }));
  world.write(`.local/state/whosup/sessions/claude-code/${id}.jsonl`, `\n${lines.join("\n\n")}\n`);
}

try {
  const asks = (waitingFor) => ({ status: "waiting", more: { waitingFor } });
  // Each begins by itself, so that not all are of one age.
  const one = await world.start({ title: "Add rate limits to the public API", directory: "src/api", ...asks("permission prompt") });
  const two = await world.start({ title: "Rebuild the search index without downtime", directory: "src/search", ...asks("permission prompt") });
  const three = await world.start({ title: "Fix the flaky login test", directory: "src/shop", status: "busy" });
  const four = await world.start({ title: "Upgrade the payment library", directory: "src/shop", status: "busy" });
  const five = await world.start({ title: "Explain how invoices are numbered", directory: "src/billing" });
  const dead = await world.start({ title: "Tidy up the release notes", directory: "src/docs", status: "busy" });
  const begin = (minutes) => [minutes, "session-started:startup"];
  log(one, [begin(200), [198, "turn-started"], [170, "turn-ended"], [60, "turn-started"], [12, "input-requested:permission"]]);
  log(two, [begin(150), [149, "turn-started"], [110, "input-requested:permission"], [95, "tool-ended"], [80, "turn-ended"], [20, "turn-started"], [3, "input-requested:permission"]]);
  log(three, [begin(90), [88, "turn-started"], [60, "turn-ended"], [30, "turn-started"], [20, "turn-ended"], [0.5, "turn-started"]]);
  log(four, [begin(40), [38, "turn-started"], [25, "turn-ended"], [7, "turn-started"]]);
  log(five, [begin(120), [118, "turn-started"], [100, "input-requested:permission"], [90, "tool-ended"], [34, "turn-ended"]]);
  await world.kill(dead);
  const { url } = await world.serve(process.env.WHOSUP);
  const page = await browser.newPage({ viewport: { width: 1100, height: 700 }, deviceScaleFactor: 1 });
  await page.goto(url);
  await page.locator('.row[data-state="died"]').waitFor();
  await page.waitForTimeout(1.1 * MINUTE);
  await page.screenshot({ path: process.argv[2], fullPage: true });
} finally {
  await browser.close();
  await world.end();
}
