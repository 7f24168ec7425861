// The reader: the answers of the command line, in the same worlds. `WHOSUP` names
// the command; without it, what compares with it is skipped.
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { ReadError, listSessions, liveness, session, version, why } from "../dist/esm/index.js";

const PACKAGE = fileURLToPath(new URL("..", import.meta.url));
const ROOT = join(PACKAGE, "../..");
const FIXTURES = join(ROOT, "crates/core/tests/fixtures");
const VECTORS = join(ROOT, "conformance/vectors");
const COMMAND = process.env.WHOSUP;

let native;
try {
  native = createRequire(import.meta.url)("../native/load.cjs").load();
} catch (error) {
  console.log(`skipped: ${error.message}`);
}
const needsNative = { skip: native === undefined && "the native part is not built" };
const needsWorlds = { skip: native?.answerToFixture === undefined && "built without the feature `testing`" };
const needsCommand = { skip: needsNative.skip || (COMMAND === undefined && "WHOSUP does not name the command") };

const json = (...path) => JSON.parse(readFileSync(join(...path), "utf8"));
const key = (one) => `${one.agent} ${one.session_id} ${one.home ?? ""}`;
const byKey = (one, other) => (key(one) < key(other) ? -1 : 1);
const folders = readdirSync(FIXTURES, { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .flatMap((agent) =>
    readdirSync(join(FIXTURES, agent.name), { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map((entry) => join(FIXTURES, agent.name, entry.name)),
  );

/** What fixtures state, and nothing that says no more than that there is nothing. */
function stated(value) {
  if (Array.isArray(value)) return value.map(stated);
  if (value === null || typeof value !== "object") return value;
  const fields = Object.entries(value).map(([name, field]) => [name, stated(field)]);
  const isNothing = (field) => field === null || field === false || (typeof field === "object" && Object.keys(field).length === 0);
  return Object.fromEntries(fields.filter(([, field]) => !isNothing(field)));
}

test("every fixture gives the answer beside it", needsWorlds, () => {
  assert.ok(folders.length > 100);
  for (const folder of folders) {
    const { sessions: found, unattributed, problems } = JSON.parse(native.answerToFixture(folder));
    const sessions = stated(found);
    const { sessions: expected = [], ...rest } = json(folder, "expected.json");
    let rows = stated(expected);
    if (json(folder, "world.json").depth !== "all") {
      // The default view leaves some out, and none that lives.
      const keys = new Set(sessions.map(key));
      const hidden = rows.filter((row) => !keys.has(key(row)));
      rows = rows.filter((row) => keys.has(key(row)));
      assert.ok(!hidden.some((row) => row.liveness === "live"), folder);
    }
    assert.deepEqual(sessions.sort(byKey), rows.sort(byKey), folder);
    assert.deepEqual(stated({ unattributed, problems }), stated(rest), folder);
  }
});

test("every vector gives the right verdict", needsWorlds, () => {
  let seen = 0;
  for (const file of readdirSync(VECTORS)) {
    for (const vector of json(VECTORS, file).vectors) {
      const answer = native.answerToVector(JSON.stringify(vector));
      if (answer === null) {
        console.log(`skipped: only root can give a file away: ${vector.name}`);
        continue;
      }
      const { sessions, problems } = JSON.parse(answer);
      if (vector.expect.verdict === "problem") {
        assert.ok(sessions.length === 0 && problems.length > 0, vector.name);
      } else {
        assert.equal(sessions.length, 1, vector.name);
        const [{ liveness, reason, confidence }] = sessions;
        const { verdict, reason: because, confidence: how = null } = vector.expect;
        assert.deepEqual([liveness, reason, confidence], [verdict, because, how], vector.name);
      }
      seen += 1;
    }
  }
  assert.ok(seen >= 60);
});

test("the types say what answers have", needsWorlds, () => {
  const answers = folders.map((folder) => native.answerToFixture(folder));
  const directory = mkdtempSync(join(PACKAGE, "test", "types-"));
  try {
    // A literal of a type has every field of it, and no other.
    const literals = [
      'import type { Snapshot } from "../../dist/esm/index.js";',
      ...answers.map((answer, at) => `export const answer${at}: Snapshot = ${answer};`),
    ];
    writeFileSync(join(directory, "literals.mts"), literals.join("\n"));
    // As in a project that has neither the types of Node.js nor newer ones of the language.
    const compilerOptions = {
      noEmit: true,
      strict: true,
      exactOptionalPropertyTypes: true,
      module: "NodeNext",
      target: "ES2022",
      lib: ["ES2022"],
      types: [],
    };
    const include = ["literals.mts", join(PACKAGE, "types/uses.mts")];
    writeFileSync(join(directory, "tsconfig.json"), JSON.stringify({ compilerOptions, include }));
    const tsc = createRequire(import.meta.url).resolve("typescript/bin/tsc");
    const output = spawnSync(process.execPath, [tsc, "-p", directory], { encoding: "utf8" });
    assert.equal(output.status, 0, output.stdout.slice(0, 2_000));
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
});

/** An agent that announces its session, in a home of its own. */
async function inHomeOfAgent(steps) {
  const home = mkdtempSync(join(tmpdir(), "whosup-reader-"));
  const { XDG_STATE_HOME, XDG_CONFIG_HOME, XDG_CACHE_HOME, ...inherited } = process.env;
  const env = { ...inherited, HOME: home };
  const driver = join(PACKAGE, "examples/driver.mjs");
  const child = spawn(process.execPath, [driver], { cwd: home, env, stdio: ["pipe", "pipe", "inherit"] });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const exited = new Promise((resolve) => child.once("exit", resolve));
  const run = (program, ...arguments_) => {
    const output = spawnSync(program, arguments_, { cwd: home, env, encoding: "utf8" });
    assert.equal(output.status, 0, output.stderr);
    return JSON.parse(output.stdout);
  };
  const module = JSON.stringify(new URL("../dist/esm/index.js", import.meta.url).href);
  const agent = {
    home,
    async ask(line) {
      child.stdin.write(`${line}\n`);
      assert.equal((await lines.next()).value, "ok");
    },
    async kill() {
      child.kill("SIGKILL");
      await exited;
    },
    /** What the reader answers in this home. */
    asked: (question) =>
      run(
        process.execPath,
        "--input-type=module",
        "-e",
        `const { listSessions, liveness, session, why } = await import(${module});
         const failed = ({ code, candidates }) => ({ code, candidates });
         console.log(JSON.stringify(await ${question}.catch(failed)));`,
      ),
    /** What the command answers in this home. */
    command: (...arguments_) => run(COMMAND, ...arguments_, "--json"),
  };
  try {
    await steps(agent);
  } finally {
    await agent.kill();
    rmSync(home, { recursive: true, force: true });
  }
}

/** Less what differs from one look to the next, and what others run here. */
function withoutMoment(document) {
  const sessions = document.sessions.filter((one) => one.agent === "driver-node");
  for (const session of sessions) {
    const { owner } = session;
    session.resources = null;
    // The start is counted from the clock of each look, to the millisecond.
    if (owner !== null) Object.assign(owner, { started_at: null });
  }
  // Those of no agent are of the machine: of a tmux server that is just ending, say.
  const problems = document.problems.filter((one) => one.agent === "driver-node");
  return JSON.stringify({ ...document, taken_at: null, sessions, problems, unattributed: [] });
}

test("the answers are those of the command line", needsCommand, () =>
  inHomeOfAgent(async (agent) => {
    await agent.ask("start s-één");
    await agent.ask("phase waiting");
    for (const isOver of [false, true]) {
      if (isOver) await agent.kill();
      for (const [question, arguments_] of Object.entries({
        "listSessions()": ["list"],
        "listSessions({ all: true })": ["list", "--all"],
        "listSessions({ all: true, agents: ['driver-node'] })": ["list", "--all", "--agent", "driver-node"],
        "listSessions({ all: true, cwd: '.' })": ["list", "--all", "--cwd", "."],
        "session('s-é')": ["show", "s-é"],
        "session('driver-node:s-één')": ["show", "s-één"],
        "why('s-één')": ["why", "s-één"],
      })) {
        const answer = agent.asked(question);
        assert.equal(withoutMoment(answer), withoutMoment(agent.command(...arguments_)), question);
        if (question !== "listSessions()" || !isOver) {
          const its = answer.sessions.find((one) => one.agent === "driver-node");
          assert.equal(its.liveness, isOver ? "exited" : "live");
        }
      }
    }
  }),
);

test("a session is live or exited or unknown, or there is none", needsNative, () =>
  inHomeOfAgent(async (agent) => {
    await agent.ask("start s1");
    assert.equal(agent.asked("liveness('s1')"), "live");
    await agent.ask("switch s2");
    assert.equal(agent.asked("liveness('s1')"), "none");
    for (const question of ["session('s1')", "why('s1')"]) {
      assert.deepEqual(agent.asked(question), { code: "no_such_session", candidates: [] });
    }
    await agent.kill();
    assert.equal(agent.asked("liveness('s2')"), "exited");
    const file = join(agent.home, ".local/state/agent-sessions/driver-node/s2.runtime.json");
    const { boot_id, pid_namespace, ...fields } = json(file);
    writeFileSync(file, JSON.stringify({ ...fields, hostname: "elsewhere" }));
    assert.equal(agent.asked("liveness('s2')"), "unknown");
  }),
);

test("an ambiguous id rejects with the candidates", needsNative, () =>
  inHomeOfAgent(async (agent) => {
    await agent.ask("start s-a");
    const place = join(agent.home, ".local/state/agent-sessions/driver-node");
    const fields = json(place, "s-a.runtime.json");
    writeFileSync(join(place, "s-b.runtime.json"), JSON.stringify({ ...fields, session_id: "s-b" }));
    for (const question of ["liveness('s-')", "session('s-')", "why('s-')"]) {
      const { code, candidates } = agent.asked(question);
      assert.equal(code, "ambiguous");
      assert.deepEqual(candidates.map((one) => one.session_id).sort(), ["s-a", "s-b"]);
      for (const one of candidates) {
        assert.deepEqual([one.agent, one.work_dir], ["driver-node", agent.home]);
        const only = JSON.stringify(`${one.agent}:${one.session_id}`);
        assert.equal(agent.asked(`liveness(${only}, ${JSON.stringify({ home: one.home })})`), one.liveness);
      }
    }
  }),
);

test("what can't be asked is named", needsNative, async () => {
  for (const [asked, code, text] of [
    [() => session("../x"), "bad_argument", "cannot look for the session `../x`: "],
    [() => why("a".repeat(129)), "bad_argument", "must not be longer than 128 bytes"],
    [() => liveness(""), "bad_argument", "must not be empty"],
    [() => liveness(5), "bad_argument", "cannot read sessions: "],
    [() => session("s", null), "bad_argument", "cannot read sessions: "],
    [() => session("no-such:x"), "no_such_agent", "cannot look for sessions of `no-such`"],
    [() => listSessions({ agents: ["no-such"] }), "no_such_agent", "cannot look for sessions of `no-such`"],
    [() => listSessions({ agents: "codex" }), "bad_argument", 'an array of names such as ["codex"], not "codex"'],
    [() => listSessions({ agents: [5] }), "bad_argument", 'such as ["codex"], not [5]'],
    [() => listSessions({ cwd: "/no/such" }), "bad_argument", "cannot look for sessions in `/no/such`"],
  ]) {
    await assert.rejects(asked(), (error) => {
      assert.ok(error instanceof ReadError);
      assert.equal(error.code, code, error.message);
      assert.ok(error.message.includes(text), error.message);
      return true;
    });
  }
});

test("a broken configuration has a code", needsNative, () =>
  inHomeOfAgent(async (agent) => {
    mkdirSync(join(agent.home, ".config/whosup"), { recursive: true });
    writeFileSync(join(agent.home, ".config/whosup/config.toml"), "homes = 5");
    assert.equal(agent.asked("listSessions()").code, "bad_config");
  }),
);

test("the version is that of the package", () => {
  assert.equal(version, json(PACKAGE, "package.json").version);
});

test("the event loop runs while one looks", needsNative, async () => {
  for (let attempt = 0; attempt < 50; attempt += 1) {
    let isDone = false;
    let turns = 0;
    const look = listSessions({ all: true }).finally(() => (isDone = true));
    while (!isDone) {
      await new Promise((resolve) => setImmediate(resolve));
      turns += 1;
    }
    await look;
    // Had the call looked itself, its answer would have been there at once.
    if (turns > 5) return;
  }
  assert.fail("the event loop stood still");
});

test("without the native part it writes and says what reading needs", () => {
  const copy = mkdtempSync(join(tmpdir(), "whosup-copy-"));
  try {
    cpSync(join(PACKAGE, "dist"), join(copy, "dist"), { recursive: true });
    mkdirSync(join(copy, "native"));
    cpSync(join(PACKAGE, "native/load.cjs"), join(copy, "native/load.cjs"));
    for (const [kind, load] of [
      ["module", `import { Owner, liveness } from ${JSON.stringify(join(copy, "dist/esm/index.js"))};`],
      ["commonjs", `const { Owner, liveness } = require(${JSON.stringify(join(copy, "dist/cjs/index.js"))});`],
    ]) {
      const program = `${load}
        if (Owner.establish("my-agent", "s1", { directory: ${JSON.stringify(copy)}, strict: true }).path === undefined) throw new Error("no path");
        liveness("s1").catch((error) => console.log(error.code, error.message));`;
      const output = spawnSync(process.execPath, [`--input-type=${kind}`, "-e", program], { encoding: "utf8" });
      assert.match(output.stdout, /^native_missing reading sessions needs the native part of whosup/, output.stderr);
      assert.ok(existsSync(join(copy, "s1.runtime.json")));
      rmSync(join(copy, "s1.runtime.json"));
    }
  } finally {
    rmSync(copy, { recursive: true, force: true });
  }
});
