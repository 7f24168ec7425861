// Builds the native part with the Rust toolchain, and puts it where `load.cjs`
// looks. Arguments go to cargo: `npm run build:native -- --features testing`.
import { spawnSync } from "node:child_process";
import { copyFileSync, renameSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const wanted = process.argv.slice(2);
const profile = wanted.some((argument) => argument.startsWith("--profile")) ? [] : ["--profile", "dist"];
const cargo = spawnSync(
  "cargo",
  ["build", "--manifest-path", join(here, "Cargo.toml"), "--message-format=json-render-diagnostics", ...profile, ...wanted],
  { encoding: "utf8", maxBuffer: 1 << 28, stdio: ["ignore", "pipe", "inherit"] },
);
if (cargo.error !== undefined) throw new Error(`cannot run cargo: ${cargo.error.message}`);
if (cargo.status !== 0) process.exit(cargo.status ?? 1);
const built = cargo.stdout
  .split("\n")
  .filter((line) => line.startsWith("{"))
  .map((line) => JSON.parse(line))
  .filter((message) => message.reason === "compiler-artifact" && message.target.kind.includes("cdylib"))
  .flatMap((message) => message.filenames)
  .find((file) => /\.(so|dylib|dll)$/.test(file));
if (built === undefined) throw new Error("cargo built no library");
const file = join(here, `whosup.${process.platform}-${process.arch}.node`);
// Not over a file that is loaded now.
copyFileSync(built, `${file}.new`);
renameSync(`${file}.new`, file);
