// A temporary home with sessions of Claude Code, and real processes that pose as them.

import { spawn, spawnSync } from "node:child_process";
import { chmodSync, copyFileSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { once } from "node:events";

/// A PID namespace of its own.
const APART = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"];

export const canBeApart = spawnSync(APART[0], [...APART.slice(1), "true"]).status === 0;

export class World {
  constructor() {
    this.root = realpathSync(mkdtempSync(join(tmpdir(), "whosup-page-")));
    this.home = join(this.root, "dev");
    mkdirSync(this.home);
    this.program = join(this.root, "opt/@anthropic-ai/claude-code/bin/claude");
    mkdirSync(dirname(this.program), { recursive: true });
    copyFileSync("/bin/cat", this.program);
    chmodSync(this.program, 0o755);
    this.children = new Set();
    this.number = 0;
  }

  write(below, text) {
    const path = join(this.home, below);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(`${path}.new`, text);
    renameSync(`${path}.new`, path);
    return path;
  }

  /// Starts a process, and writes what Claude Code would.
  async start({ title, directory = "src/shop", status = "idle", since = 0, more = {} }) {
    const cwd = join(this.home, directory);
    mkdirSync(cwd, { recursive: true });
    const child = spawn(this.program, [], { cwd, env: { HOME: this.home }, stdio: ["pipe", "ignore", "ignore"], argv0: "claude" });
    await once(child, "spawn");
    this.children.add(child);
    const id = `${String(++this.number).padStart(8, "0")}-0000-4000-8000-${String(process.pid).padStart(12, "0")}`;
    const stat = readFileSync(`/proc/${child.pid}/stat`, "utf8");
    const session = { id, cwd, child, start: stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19] };
    this.say(session, title, since);
    this.record(session, status, since, more);
    return session;
  }

  record({ id, cwd, child, start }, status, since = 0, more = {}) {
    const now = Date.now() - since;
    const record = { pid: child.pid, sessionId: id, cwd, startedAt: now, procStart: start, version: "2.1.197", kind: "interactive", entrypoint: "cli", status, updatedAt: now, statusUpdatedAt: now, ...more };
    this.write(`.claude/sessions/${child.pid}.json`, JSON.stringify(record));
  }

  say({ id, cwd }, text, since = 0) {
    const line = (type, content) => JSON.stringify({ type, isSidechain: false, message: { role: type, content, ...(type === "assistant" ? { model: "claude-sonnet-4-5", stop_reason: "end_turn", id: `msg_${id}`, usage: { input_tokens: 1200, cache_read_input_tokens: 3400, cache_creation_input_tokens: 0, output_tokens: 560 } } : {}) }, timestamp: new Date(Date.now() - since - 5000).toISOString(), cwd, sessionId: id, version: "2.1.197", gitBranch: "main" });
    const folder = cwd.replace(/[^A-Za-z0-9]/g, "-");
    const lines = [line("user", text), line("assistant", [{ type: "text", text: "Done." }])];
    this.write(`.claude/projects/${folder}/${id}.jsonl`, `${lines.join("\n")}\n`);
  }

  async kill({ child }) {
    const ended = once(child, "exit");
    child.kill("SIGKILL");
    await ended;
    this.children.delete(child);
  }

  /// Starts a server, and returns its address with the token. One that is `apart` sees no
  /// process of this machine.
  async serve(whosup, args = [], isApart = false) {
    const before = isApart ? [...APART, whosup] : [whosup];
    const child = spawn(before[0], [...before.slice(1), "serve", ...(args.includes("--listen") ? [] : ["--listen", "127.0.0.1:0"]), ...args], { env: { HOME: this.home, PATH: process.env.PATH }, stdio: ["ignore", "pipe", "ignore"] });
    this.children.add(child);
    let text = "";
    for await (const piece of child.stdout) {
      text += piece;
      if (text.includes("\n")) break;
    }
    return { url: text.split("\n")[0], child };
  }

  /// Replaces the token of the running server, and returns the address with the new one.
  newToken(whosup) {
    const made = spawnSync(whosup, ["serve", "--new-token"], { env: { HOME: this.home, PATH: process.env.PATH }, encoding: "utf8" });
    return made.stdout.split("\n")[0];
  }

  async end() {
    const running = [...this.children].filter((child) => child.exitCode === null && child.signalCode === null);
    await Promise.all(running.map(async (child) => {
      const ended = once(child, "exit");
      child.kill("SIGKILL");
      await ended;
    }));
    rmSync(this.root, { recursive: true, force: true });
  }
}
