// Compiles for both kinds of modules.
import { execFileSync } from "node:child_process";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const tsc = createRequire(import.meta.url).resolve("typescript/bin/tsc");
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
