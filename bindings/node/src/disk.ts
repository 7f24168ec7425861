import { randomBytes } from "node:crypto";
import * as fs from "node:fs";
import * as path from "node:path";

import { codeOf } from "./error.js";
import { SIDECAR_BYTES_MAX } from "./sidecar.js";

const RETRIES_MAX = 10;
const RETRY_AFTER_MS = 5;
const IN_USE = new Set(["EPERM", "EACCES", "EBUSY"]);

/** Whether a name is that of a temporary file of a sidecar's writer. */
export function isTemporary(name: string): boolean {
  return /^\.sidecar-[0-9a-f]{16}\.tmp$/.test(name);
}

/** Sixteen hexadecimal random digits. */
export function digits(): string {
  return randomBytes(8).toString("hex");
}

function temporaryIn(directory: string): string {
  return path.join(directory, `.sidecar-${digits()}.tmp`);
}

function isAbsent(error: unknown): boolean {
  const code = codeOf(error);
  return code === "ENOENT" || code === "ENOTDIR";
}

/** Waits out a refusal that goes away by itself: on Windows, a file that a scanner or a reader has open. */
function patiently<T>(step: () => T): T {
  for (let attempt = 1; attempt <= RETRIES_MAX; attempt += 1) {
    try {
      return step();
    } catch (error) {
      if (process.platform !== "win32" || !IN_USE.has(codeOf(error) ?? "")) throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, RETRY_AFTER_MS * attempt);
    }
  }
  return step();
}

/** A small regular file, without following a link and without waiting; `undefined` if there is nothing. */
export function read(file: string): { bytes: Buffer; modifiedMs: number } | undefined {
  const { O_RDONLY, O_NOFOLLOW, O_NONBLOCK } = fs.constants;
  let descriptor: number;
  try {
    descriptor = fs.openSync(file, O_RDONLY | (O_NOFOLLOW ?? 0) | (O_NONBLOCK ?? 0));
  } catch (error) {
    if (isAbsent(error)) return undefined;
    throw error;
  }
  try {
    const facts = fs.fstatSync(descriptor);
    if (!facts.isFile() || facts.size > SIDECAR_BYTES_MAX) throw new Error("it is no small regular file");
    return { bytes: fs.readFileSync(descriptor), modifiedMs: facts.mtimeMs };
  } finally {
    fs.closeSync(descriptor);
  }
}

/** Makes a directory and those above it that are missing, for ourselves alone whatever the umask is. */
export function makeDirectories(directory: string): void {
  if (fs.existsSync(directory)) return;
  makeDirectories(path.dirname(directory));
  try {
    fs.mkdirSync(directory, { mode: 0o700 });
    fs.chmodSync(directory, 0o700);
  } catch (error) {
    if (codeOf(error) !== "EEXIST") throw error;
  }
}

/** Whether only this user or root may have written a file. */
export function isTrusted(file: string): boolean {
  const facts = fs.lstatSync(file);
  const own = process.geteuid?.();
  return own === undefined || ((facts.uid === own || facts.uid === 0) && (facts.mode & 0o002) === 0);
}

function writeTemporary(directory: string, bytes: Buffer): string {
  const file = temporaryIn(directory);
  const descriptor = fs.openSync(file, "wx", 0o600);
  try {
    try {
      for (let at = 0; at < bytes.length; ) at += fs.writeSync(descriptor, bytes, at);
      // The mode that it was made with is less what the umask takes away.
      if (process.platform !== "win32") fs.fchmodSync(descriptor, 0o600);
      fs.fsyncSync(descriptor);
    } finally {
      fs.closeSync(descriptor);
    }
  } catch (error) {
    remove(file);
    throw error;
  }
  return file;
}

/** Makes a new file, whole from its first moment. Fails with EEXIST if something has that name. */
export function makeNew(file: string, bytes: Buffer): void {
  const temporary = writeTemporary(path.dirname(file), bytes);
  try {
    try {
      fs.linkSync(temporary, file);
    } catch (error) {
      if (codeOf(error) === "EEXIST") throw error;
      // A file system without links: the name is taken first, and is empty until the rename.
      fs.closeSync(fs.openSync(file, "wx", 0o600));
      try {
        patiently(() => fs.renameSync(temporary, file));
      } catch (failed) {
        remove(file);
        throw failed;
      }
    }
  } finally {
    remove(temporary);
  }
}

/** Replaces a file, which is ours. */
export function replace(file: string, bytes: Buffer): void {
  const temporary = writeTemporary(path.dirname(file), bytes);
  try {
    patiently(() => fs.renameSync(temporary, file));
  } catch (error) {
    remove(temporary);
    throw error;
  }
}

/** Removes a file; one that is not there is removed. */
export function remove(file: string): void {
  try {
    patiently(() => fs.unlinkSync(file));
  } catch (error) {
    if (!isAbsent(error)) throw error;
  }
}

/** Gives a file a temporary name, and tells which; `undefined` if there is none. */
export function moveAside(file: string): string | undefined {
  const aside = temporaryIn(path.dirname(file));
  try {
    patiently(() => fs.renameSync(file, aside));
    return aside;
  } catch (error) {
    if (isAbsent(error)) return undefined;
    throw error;
  }
}

/**
 * Gives a file a name that is free. Fails with EEXIST if it is not. If the file is gone, a process
 * that has just made a claim removed it: a temporary file of the dead.
 */
export function putBack(aside: string, file: string): void {
  try {
    fs.linkSync(aside, file);
  } catch (error) {
    if (isAbsent(error)) return;
    throw error;
  }
  remove(aside);
}
