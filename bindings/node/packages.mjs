// Lays out what npm gets, from files that are built already: the package of this platform,
// with the program and the native part, and `whosup`, which asks for the packages of all
// platforms. Usage: node packages.mjs FOLDER PROGRAM LIBRARY
import { chmodSync, copyFileSync, cpSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const [folder, program, library] = process.argv.slice(2);
const { packages } = createRequire(import.meta.url)("./native/load.cjs");
const manifest = JSON.parse(readFileSync(join(here, "package.json"), "utf8"));
const name = packages[`${process.platform}-${process.arch}`];
if (library === undefined) throw new Error("usage: node packages.mjs FOLDER PROGRAM LIBRARY");
if (name === undefined) throw new Error(`native/load.cjs names no package for ${process.platform}-${process.arch}`);

/** A folder with a manifest and the licences. */
function lay(directory, fields) {
  mkdirSync(directory, { recursive: true });
  writeFileSync(join(directory, "package.json"), `${JSON.stringify(fields, null, 2)}\n`);
  for (const licence of ["LICENSE-MIT", "LICENSE-APACHE"]) copyFileSync(join(here, licence), join(directory, licence));
  return directory;
}

const { version, license, repository, engines } = manifest;
const platform = lay(join(folder, "platform"), {
  name,
  version,
  description: `The program and the native part of whosup for ${name.split("/")[1]}`,
  license,
  repository,
  engines,
  os: [process.platform],
  cpu: [process.arch],
  ...(name.endsWith("-gnu") && { libc: ["glibc"] }),
  // A program can't be run from an archive, in which Yarn keeps packages.
  preferUnplugged: true,
  publishConfig: { access: "public" },
});
writeFileSync(join(platform, "README.md"), `# ${name}\n\n[whosup](https://www.npmjs.com/package/whosup) installs this package where it fits.\n`);
copyFileSync(program, join(platform, "whosup"));
chmodSync(join(platform, "whosup"), 0o755);
copyFileSync(library, join(platform, "whosup.node"));

const { devDependencies: _, scripts: __, ...published } = manifest;
const optionalDependencies = Object.fromEntries(Object.values(packages).map((each) => [each, version]));
const whosup = lay(join(folder, "whosup"), { ...published, optionalDependencies });
for (const each of ["dist", "bin", "native/load.cjs", "README.md"]) cpSync(join(here, each), join(whosup, each), { recursive: true });
