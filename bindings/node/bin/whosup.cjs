#!/usr/bin/env node
"use strict";
// Runs the program from the package of this platform.

const { spawn } = require("node:child_process");
const { find } = require("../native/load.cjs");

const SIGNALS = ["SIGINT", "SIGQUIT", "SIGTERM", "SIGHUP"];
// A terminal sends these to the program as well.
const FROM_THE_TERMINAL = new Set(["SIGINT", "SIGQUIT"]);

function fail(message) {
  console.error(`error: cannot run whosup: ${message}\nhint: \`cargo install whosup\` builds it where there is Rust`);
  process.exit(2);
}

let program;
try {
  program = find("whosup");
} catch (error) {
  fail(error.message);
}
const child = spawn(program, process.argv.slice(2), { stdio: "inherit" });
for (const signal of SIGNALS) {
  process.on(signal, () => {
    if (!FROM_THE_TERMINAL.has(signal) || !process.stdin.isTTY) child.kill(signal);
  });
}
child.on("error", (error) => fail(error.message));
child.on("exit", (status, signal) => {
  if (signal === null) process.exit(status);
  for (const caught of SIGNALS) process.removeAllListeners(caught);
  process.kill(process.pid, signal);
});
