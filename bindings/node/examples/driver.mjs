// The smallest agent: it does what `whosup conformance` tells it on standard
// input (see docs/conformance.md), and announces its sessions.
import { createInterface } from "node:readline";

import { Owner } from "../dist/esm/index.js";

let owner;
const answer = (line) => process.stdout.write(`${line}\n`);
for await (const line of createInterface({ input: process.stdin })) {
  const [, command, rest] = /^(\S*) ?(.*)$/.exec(line) ?? [];
  if (command === "exit") process.exit(0);
  if (command === "crash") process.kill(process.pid, "SIGKILL");
  try {
    if (command === "start") owner = Owner.establish("driver-node", rest, { version: "0.1.0", strict: true });
    else if (!["switch", "phase", "release"].includes(command)) {
      answer("unsupported");
      continue;
    } else if (owner === undefined) throw new Error("nothing was started");
    else if (command === "switch") owner.switchSession(rest);
    else if (command === "phase") owner.update(rest, rest === "waiting" ? "permission" : undefined);
    else owner.release();
    answer("ok");
  } catch (error) {
    answer(`error ${String(error.message).replaceAll("\n", " ")}`);
  }
}
