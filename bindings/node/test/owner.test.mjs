import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterEach, beforeEach, test } from "node:test";
import { fileURLToPath } from "node:url";

import { Owner, SidecarError } from "../dist/esm/index.js";

const DRIVER = fileURLToPath(new URL("../examples/driver.mjs", import.meta.url));
let directory;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "whosup-node-"));
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

const establish = (id, more = {}) => Owner.establish("my-agent", id, { directory, workDir: "/home/dev/app", ...more });
const names = () => readdirSync(directory).sort();
const sidecar = (name) => JSON.parse(readFileSync(join(directory, name), "utf8"));

/** A process that does what lines tell it. */
function driver() {
  const child = spawn(process.execPath, [DRIVER], {
    env: { ...process.env, XDG_STATE_HOME: directory },
    stdio: ["pipe", "pipe", "inherit"],
  });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  return {
    pid: child.pid,
    async ask(line) {
      child.stdin.write(`${line}\n`);
      return (await lines.next()).value;
    },
    kill() {
      return new Promise((resolve) => {
        child.once("exit", resolve);
        child.kill("SIGKILL");
      });
    },
  };
}

test("a session is announced, switched, updated and released", () => {
  const owner = establish("s1", { version: "1.2.0", resume: ["my-agent", "--resume", "s1"] });
  const first = sidecar("s1.runtime.json");
  assert.equal(first.schema_version, 1);
  assert.equal(first.pid, process.pid);
  assert.equal(first.hostname, hostname());
  assert.equal(first.work_dir, "/home/dev/app");
  assert.equal(first.my_agent_version, "1.2.0");
  assert.deepEqual(first.resume, ["my-agent", "--resume", "s1"]);
  assert.equal(statSync(owner.path).mode & 0o777, 0o600);
  assert.ok(owner.update("waiting", "question"));
  assert.equal(sidecar("s1.runtime.json").waiting_for, "question");
  assert.ok(owner.update("idle"));
  assert.equal(sidecar("s1.runtime.json").waiting_for, undefined);
  assert.equal(sidecar("s1.runtime.json").started_at, first.started_at);
  assert.ok(owner.switchSession("séance-会話"));
  assert.deepEqual(names(), ["séance-会話.runtime.json"]);
  assert.equal(sidecar("séance-会話.runtime.json").phase, undefined);
  assert.ok(owner.release());
  assert.deepEqual(names(), []);
  assert.equal(owner.path, undefined);
  assert.equal(owner.update("idle"), false);
  assert.deepEqual(names(), []);
});

test("how many sessions the process serves is in every file, and in none unless it is announced", () => {
  establish("s1").release();
  for (const serves of ["one", "many"]) {
    const owner = establish("s1", { serves, strict: true });
    assert.equal(sidecar("s1.runtime.json").serves, serves);
    owner.update("working");
    assert.equal(sidecar("s1.runtime.json").serves, serves);
    owner.switchSession("s2");
    assert.equal(sidecar("s2.runtime.json").serves, serves);
    owner.release();
  }
  const several = ["s1", "s2"].map((id) => establish(id));
  assert.deepEqual(names(), ["s1.runtime.json", "s2.runtime.json"]);
  assert.ok(!("serves" in sidecar("s1.runtime.json")));
  for (const owner of several) owner.release();
  for (const serves of ["few", 1, null]) {
    assert.throws(() => establish("s1", { serves, strict: true }), SidecarError);
  }
  assert.deepEqual(names(), []);
});

test("it names its process so that no other can be meant", { skip: process.platform !== "linux" }, () => {
  establish("s1");
  const said = sidecar("s1.runtime.json");
  const stat = readFileSync("/proc/self/stat", "latin1");
  assert.equal(said.process_start, stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19]);
  assert.equal(said.process_start_kind, "linux-ticks");
  assert.equal(said.boot_id, readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim());
  assert.ok(Number.isInteger(said.pid_namespace));
});

test("ten thousand switches by two tasks leave the last one's file", async () => {
  const memory = existsSync("/dev/shm") ? "/dev/shm" : tmpdir();
  const place = mkdtempSync(join(memory, "whosup-node-"));
  try {
    const owner = establish("first", { directory: place });
    let last;
    const switchAll = async (task) => {
      for (let at = 0; at < 5_000; at += 1) {
        last = `t${task}-${at}`;
        assert.ok(owner.switchSession(last, { directory: place }), String(owner.lastError));
        // Calls are done when they return: whoever comes next sees one file.
        assert.deepEqual(readdirSync(place), [`${last}.runtime.json`]);
        await null;
      }
    };
    await Promise.all([switchAll(0), switchAll(1)]);
    assert.deepEqual(readdirSync(place), [`${last}.runtime.json`]);
  } finally {
    rmSync(place, { recursive: true, force: true });
  }
});

test("what can't be a session is refused and changes nothing", () => {
  for (const id of ["", "../x", "a/b", "..", "a\nb", "con", "NUL.txt", "x ", "x.", "a\u200bb", "x".repeat(129), "\ud800"]) {
    assert.equal(establish(id).lastError?.name, "SidecarError", JSON.stringify(id));
    assert.throws(() => establish(id, { strict: true }), SidecarError);
  }
  assert.throws(() => Owner.establish("schema", "s1", { directory, strict: true }), SidecarError);
  for (const refused of [
    Owner.establish("My Agent", "s1", { directory }),
    establish("s1", { workDir: "relative" }),
    establish("s1", { workDir: 5 }),
    establish("s1", { directory: 5 }),
    establish("s1", { transcript: 5 }),
    establish("s1", { endpoint: 5n }),
    establish("s1", { endpoint: "x".repeat(70_000) }),
    establish("s1", { serves: "few" }),
  ]) {
    checkRefused(refused, "bad_argument");
  }
  assert.deepEqual(names(), []);
});

/** The last call was not done, and nothing is announced. */
function checkRefused(owner, code) {
  assert.ok(owner.lastError instanceof SidecarError);
  assert.equal(owner.lastError.code, code, owner.lastError.message);
  assert.equal(owner.path, undefined);
}

test("a handle without a session announces nothing", () => {
  const owner = establish("../x");
  assert.equal(owner.update("idle") || owner.switchSession("s1"), false);
  checkRefused(owner, "not_established");
  assert.deepEqual(names(), []);
});

test("the last error is that of the last call", () => {
  const place = join(directory, "sessions");
  writeFileSync(place, "");
  const owner = establish("s1", { directory: place });
  checkRefused(owner, "io_error");
  rmSync(place);
  assert.ok(owner.update("working"));
  assert.equal(owner.lastError, undefined);
  for (const wrong of [["lunch"], ["toString"], ["waiting", "lunch"]]) {
    assert.equal(owner.update(...wrong), false);
    assert.equal(owner.lastError.code, "bad_argument");
    assert.equal(sidecar("sessions/s1.runtime.json").phase, "working");
  }
  assert.ok(owner.release());
  assert.equal(owner.lastError, undefined);
  assert.equal(owner.update("idle"), false);
  checkRefused(owner, "released");
});

test("the end of a `using` block releases", () => {
  const owner = establish("s1");
  owner[Symbol.dispose]();
  assert.deepEqual(names(), []);
  owner.update("idle");
  checkRefused(owner, "released");
});

test("a disk that refuses is no reason to stop", () => {
  writeFileSync(join(directory, "file"), "");
  const owner = establish("s1", { directory: join(directory, "file") });
  checkRefused(owner, "io_error");
  assert.match(owner.lastError.message, /cannot write sidecar/);
  assert.deepEqual(names(), ["file"]);
});

test("a file of another live process is left alone", async () => {
  const other = driver();
  assert.equal(await other.ask("start s1"), "ok");
  const place = join(directory, "agent-sessions/driver-node");
  const before = readFileSync(join(place, "s1.runtime.json"), "utf8");
  const owner = establish("s1", { directory: place });
  assert.equal(readFileSync(join(place, "s1.runtime.json"), "utf8"), before);
  assert.match(owner.path, /s1\.claim-[0-9a-f]{16}\.runtime\.json$/);
  owner.release();
  assert.deepEqual(readdirSync(place), ["s1.runtime.json"]);
  await other.kill();
  const next = establish("s1", { directory: place });
  assert.equal(next.path, join(place, "s1.runtime.json"));
  assert.deepEqual(readdirSync(place), ["s1.runtime.json"]);
});

test("a file that somebody else wrote or removed is theirs", () => {
  const owner = establish("s1");
  writeFileSync(join(directory, "s1.runtime.json"), "theirs");
  assert.ok(owner.update("working"));
  assert.equal(names().length, 2);
  owner.release();
  assert.equal(readFileSync(join(directory, "s1.runtime.json"), "utf8"), "theirs");
});

test("temporary files of the dead go, others stay", async () => {
  const dead = driver();
  assert.equal(await dead.ask("start s1"), "ok");
  await dead.kill();
  const left = readFileSync(join(directory, "agent-sessions/driver-node/s1.runtime.json"));
  const temporary = (digit) => `.sidecar-${digit.repeat(16)}.tmp`;
  writeFileSync(join(directory, temporary("1")), left);
  writeFileSync(join(directory, temporary("2")), '{"schema_ver');
  writeFileSync(join(directory, temporary("3")), '{"schema_ver');
  const old = new Date(Date.now() - 7_200_000);
  utimesSync(join(directory, temporary("3")), old, old);
  const owner = establish("s2");
  owner.release();
  assert.deepEqual(names(), [temporary("2"), "agent-sessions"]);
});

test("both kinds of modules have the same", () => {
  const { Owner: Required } = createRequire(import.meta.url)("../dist/cjs/index.js");
  const owner = Required.establish("my-agent", "s1", { directory });
  assert.deepEqual(names(), ["s1.runtime.json"]);
  owner.release();
});

test("the common place is where the environment says", () => {
  const state = join(directory, "state");
  mkdirSync(state);
  const script = `import { Owner } from ${JSON.stringify(new URL("../dist/esm/index.js", import.meta.url).href)};
    const { path, lastError } = Owner.establish("my-agent", "s1");
    console.log(path ?? lastError.code)`;
  const run = (environment) =>
    spawnSync(process.execPath, ["--input-type=module", "-e", script], {
      env: { PATH: process.env.PATH, ...environment },
      encoding: "utf8",
    }).stdout.trim();
  assert.equal(run({ XDG_STATE_HOME: state }), join(state, "agent-sessions/my-agent/s1.runtime.json"));
  const home = { HOME: directory, XDG_STATE_HOME: "relative" };
  assert.equal(run(home), join(directory, ".local/state/agent-sessions/my-agent/s1.runtime.json"));
  assert.equal(run({ HOME: "relative" }), "no_home");
});
