// Compiles for both kinds of modules.
import { execFileSync } from "node:child_process";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));

// A package that installs this folder brings none of what it is built with.
function compiler() {
  const find = () => createRequire(import.meta.url).resolve("typescript/bin/tsc");
  try {
    return find();
  } catch {
    const npm = process.env.npm_execpath;
    if (npm === undefined) throw new Error("there is no TypeScript here: run `npm install` in this folder");
    const { npm_config_local_prefix: _, ...env } = process.env;
    const options = ["--prefix", here, "--include=dev", "--ignore-scripts", "--no-audit", "--no-fund"];
    execFileSync(process.execPath, [npm, "install", ...options], { cwd: here, env, stdio: "inherit" });
    return find();
  }
}

const tsc = compiler();
rmSync(join(here, "dist"), { recursive: true, force: true });
for (const [directory, type, module] of [
  ["esm", "module", "NodeNext"],
  ["cjs", "commonjs", "NodeNext"],
]) {
  const out = join(here, "dist", directory);
  mkdirSync(out, { recursive: true });
  writeFileSync(join(out, "package.json"), JSON.stringify({ type }) + "\n");
  // The kind of a module is that of the package that its source is in.
  const options = type === "module" ? ["--module", module] : ["--module", "CommonJS", "--moduleResolution", "Node10"];
  execFileSync(process.execPath, [tsc, "-p", here, "--outDir", out, ...options], { stdio: "inherit" });
}
// A checkout that is installed for reading as well.
if (process.env.WHOSUP_NATIVE === "1") await import("./native/build.mjs");
