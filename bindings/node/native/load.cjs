"use strict";

const { join } = require("node:path");

const name = `whosup.${process.platform}-${process.arch}.node`;

/** Loads the native part, once somebody reads. */
exports.load = () => {
  try {
    return require(join(__dirname, name));
  } catch (cause) {
    throw new Error(
      `reading sessions needs the native part of whosup, which is not here (writing a sidecar does not): ` +
        `there is no ${name} that can be loaded; in a checkout of whosup, ` +
        "`npm --prefix bindings/node run build:native` builds it",
      { cause },
    );
  }
};
