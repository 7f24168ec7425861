// An agent whose data lie as qwen-code's do, and which announces its sessions
// with the package `whosup`: beside its transcripts, as qwen-code 0.24.4 does, or
// in the common place (`--common`). It obeys the lines on standard input that
// docs/conformance.md describes; `prompt TEXT` is a prompt that it answers.
import { randomUUID } from "node:crypto";
import { appendFileSync, mkdirSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

import { Owner } from "whosup";

const VERSION = "0.24.4";
const isCommon = process.argv.includes("--common");
const project = process.cwd().replaceAll(/[^a-zA-Z0-9]/g, "-");
const chats = join(process.env.QWEN_HOME ?? join(homedir(), ".qwen"), "projects", project, "chats");
mkdirSync(chats, { recursive: true });

let owner;
let session;

function begin(id) {
  if (owner === undefined) {
    // Beside its own data the name is there for the field `qwen_version` alone.
    const place = isCommon ? {} : { directory: chats };
    owner = Owner.establish(isCommon ? "qwen-code" : "qwen", id, { version: VERSION, strict: true, ...place });
  } else {
    owner.switchSession(id);
  }
  session = id;
}

function prompt(text) {
  const record = (type, role, said) => ({
    uuid: randomUUID(),
    parentUuid: null,
    sessionId: session,
    timestamp: new Date().toISOString(),
    type,
    cwd: process.cwd(),
    version: VERSION,
    message: { role, parts: [{ text: said }] },
  });
  const records = [record("user", "user", text), record("assistant", "model", "Done.")];
  appendFileSync(join(chats, `${session}.jsonl`), records.map((one) => `${JSON.stringify(one)}\n`).join(""));
}

const commands = {
  start: begin,
  switch: begin,
  prompt,
  phase: (name) => owner.update(name, name === "waiting" ? "permission" : undefined),
  release: () => owner.release(),
};

for await (const line of createInterface({ input: process.stdin })) {
  const [, command, rest] = /^(\S*) ?(.*)$/.exec(line) ?? [];
  if (command === "exit") process.exit(0);
  if (command === "crash") process.kill(process.pid, "SIGKILL");
  try {
    const follow = commands[command];
    follow?.(rest);
    process.stdout.write(follow === undefined ? "unsupported\n" : "ok\n");
  } catch (error) {
    process.stdout.write(`error ${String(error.message).replaceAll("\n", " ")}\n`);
  }
}
