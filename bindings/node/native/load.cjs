"use strict";

const { existsSync } = require("node:fs");
const { join } = require("node:path");

const platform = `${process.platform}-${process.arch}`;
const name = `whosup.${platform}.node`;
/** The packages that have the program and the native part: npm installs the one that fits. */
const packages = { "linux-x64": "@whosup/linux-x64-gnu" };
exports.packages = packages;

/** Finds a file of this platform's package. Throws if the package is not installed. */
exports.find = (file) => {
  if (packages[platform] === undefined) throw new Error(`no package of whosup is for ${platform}`);
  try {
    return require.resolve(`${packages[platform]}/${file}`);
  } catch (cause) {
    // The C library is reported here only: asking for it takes some milliseconds.
    const isMusl = process.platform === "linux" && process.report?.getReport?.().header?.glibcVersionRuntime === undefined;
    throw new Error(
      isMusl
        ? `no package of whosup is for ${platform} with another C library than glibc`
        : `the package ${packages[platform]} is not installed: npm leaves it out with --omit=optional`,
      { cause },
    );
  }
};

/** Loads the native part, at the first read. */
exports.load = () => {
  try {
    const built = join(__dirname, name);
    return require(existsSync(built) ? built : exports.find("whosup.node"));
  } catch (cause) {
    throw new Error(
      `reading sessions needs the native part of whosup, which is not here (writing a sidecar does not): ` +
        `${cause.message}; in a checkout of whosup, \`npm --prefix bindings/node run build:native\` builds it`,
      { cause },
    );
  }
};
