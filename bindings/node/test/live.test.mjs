// Watching and waiting, beside a real agent that starts, works and is killed.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const PACKAGE = fileURLToPath(new URL("..", import.meta.url));
const MODULE = JSON.stringify(new URL("../dist/esm/index.js", import.meta.url).href);

let native;
try {
  native = createRequire(import.meta.url)("../native/load.cjs").load();
} catch (error) {
  console.log(`skipped: ${error.message}`);
}
const needsNative = { skip: native === undefined && "the native part is not built" };

const BEGIN = `
import { readFileSync, readdirSync } from "node:fs";
const { wait, watch } = await import(${MODULE});
const tell = (value) => console.log(JSON.stringify(value));
const engines = () => readdirSync("/proc/self/task").filter((task) => {
  try { return readFileSync("/proc/self/task/" + task + "/comm", "utf8").trim() === "whosup-live"; } catch { return false; }
}).length;
const ofSession = ({ kind }) => ["snapshot", "added", "changed", "removed"].includes(kind);
const isOver = (change) => (change.kind === "removed" && change.session.liveness === "exited") || change.changes?.liveness?.new === "exited";
`;

/** An agent that announces its session, and a program in its home, of which each line is JSON. */
async function beside(program, steps) {
  const home = mkdtempSync(join(tmpdir(), "whosup-live-"));
  const { XDG_STATE_HOME, XDG_CONFIG_HOME, XDG_CACHE_HOME, ...inherited } = process.env;
  const start = (...arguments_) => {
    const child = spawn(process.execPath, arguments_, { cwd: home, env: { ...inherited, HOME: home }, stdio: ["pipe", "pipe", "inherit"] });
    const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
    const exited = new Promise((resolve) => child.once("exit", resolve));
    const kill = async () => {
      child.kill("SIGKILL");
      await exited;
    };
    return { child, exited, kill, line: async () => (await lines.next()).value };
  };
  const agent = start(join(PACKAGE, "examples/driver.mjs"));
  const ask = async (line) => {
    agent.child.stdin.write(`${line}\n`);
    assert.equal(await agent.line(), "ok");
  };
  await ask("start s1");
  const watcher = start("--input-type=module", "-e", BEGIN + program);
  const line = async () => {
    const text = await watcher.line();
    assert.notEqual(text, undefined, "it ended");
    return JSON.parse(text);
  };
  try {
    await steps({ ask, line, kill: agent.kill, ended: watcher.exited });
  } finally {
    await agent.kill();
    await watcher.kill();
    rmSync(home, { recursive: true, force: true });
  }
}

test("each change is seen, and leaving the loop releases everything", needsNative, () =>
  beside(
    `for await (const change of watch({ agents: ["driver-node"] })) {
       if (ofSession(change)) tell(change);
       if (isOver(change)) break;
     }
     tell(engines());`,
    async ({ ask, line, kill, ended }) => {
      const snapshot = await line();
      assert.equal(snapshot.kind, "snapshot");
      assert.deepEqual(snapshot.sessions.map(({ liveness }) => liveness), ["live"]);
      await ask("phase waiting");
      assert.equal((await line()).changes.phase.new, "waiting");
      await kill();
      const gone = await line();
      assert.equal(gone.session?.liveness ?? gone.changes.liveness.new, "exited");
      assert.equal(await line(), 0);
      // Nothing keeps the event loop.
      assert.equal(await ended, 0);
    },
  ),
);

test("a signal ends it", needsNative, () =>
  beside(
    `const stop = new AbortController();
     for await (const { kind } of watch({ cwd: "/proc", signal: stop.signal })) {
       if (kind === "snapshot") setTimeout(() => stop.abort(), 200);
     }
     tell(engines());
     for await (const change of watch({ signal: AbortSignal.abort() })) tell(change);
     await wait({ id: "s1", until: "ended", signal: AbortSignal.timeout(200) }).catch(({ name }) => tell(name));
     tell(engines());`,
    async ({ line, ended }) => {
      assert.equal(await line(), 0);
      assert.equal(await line(), "TimeoutError");
      assert.equal(await line(), 0);
      assert.equal(await ended, 0);
    },
  ),
);

test("waiting ends when it has come, cannot come, or in time", needsNative, () =>
  beside(
    `tell(await wait({ id: "s1", until: "ended", timeoutMs: 300 }));
     tell(await wait({ id: "s1", until: "waiting" }));
     for (const wrong of [{ id: "s-none", until: "idle" }, { until: "lunch" }, { until: "idle", agents: "codex" }]) {
       await wait(wrong).catch(({ code }) => tell(code));
     }
     await watch({ cwd: "/no/such" }).next().catch(({ code }) => tell(code));
     tell(await wait({ id: "s1", until: "exited" }));
     tell(engines());`,
    async ({ ask, line, kill, ended }) => {
      assert.deepEqual(await line(), { outcome: "timed_out", sessions: [] });
      await ask("phase waiting");
      const reached = await line();
      assert.deepEqual([reached.outcome, reached.sessions.map(({ phase }) => phase)], ["reached", ["waiting"]]);
      for (const code of ["no_such_session", "bad_argument", "bad_argument", "bad_argument"]) assert.equal(await line(), code);
      await kill();
      const exited = await line();
      assert.deepEqual([exited.outcome, exited.sessions[0].liveness], ["reached", "exited"]);
      assert.equal(await line(), 0);
      assert.equal(await ended, 0);
    },
  ),
);
