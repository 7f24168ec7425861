/// <reference lib="esnext.disposable" preserve="true" />
import * as fs from "node:fs";
import * as os from "node:os";
import * as path from "node:path";
import { isMainThread } from "node:worker_threads";

import * as disk from "./disk.js";
import { SidecarError, codeOf } from "./error.js";
import type { OpenPhase, Serves, WaitingFor } from "./generated.js";
import { checkAgent, checkSession, refused } from "./name.js";
import { isGone, isSameProcess, ownIdentity } from "./process.js";
import { SIDECAR_BYTES_MAX, parseSidecar, type Identity, type Sidecar } from "./sidecar.js";

const SUFFIX = ".runtime.json";
const TAKES_MAX = 8;
const SIBLINGS_MAX = 16;
const LISTED_MAX = 10_000;
const LEFT_OVER_AFTER_MS = 3_600_000;

// Records, so that the compiler finds a word that is missing.
const PHASES: Record<OpenPhase, true> = { starting: true, idle: true, working: true, waiting: true };
const WAITS: Record<WaitingFor, true> = { permission: true, question: true, auth: true, prompt: true };
const SERVES: Record<Serves, true> = { one: true, many: true };

/** Who announces. */
export interface AgentOptions {
  /** The agent's version. */
  version?: string;
  /**
   * How many sessions a process of the agent serves at once: `one` if it leaves a session
   * when it takes up another, `many` if it is a daemon. Without it, readers take every
   * session that the process announces for current.
   */
  serves?: Serves;
  /** Throw what goes wrong; otherwise the call returns `false`, and it is in `lastError`. */
  strict?: boolean;
}

/** One session. */
export interface SessionOptions {
  /** The directory that it works in, absolute; that of the process if it is not said. */
  workDir?: string;
  /** A directory that sessions share, for the sidecar; the common place if it is not said. */
  directory?: string;
  /** A directory that is this session's alone, for the sidecar. */
  sessionDirectory?: string;
  /** Its transcript. */
  transcript?: string;
  /** The process that has the terminal, where it is another one. */
  clientPid?: number;
  /** How to resume it; readers show it and never run it. */
  resume?: string | readonly string[];
  /** Where the process listens; never with a secret in it. */
  endpoint?: string;
}

interface Written {
  file: string;
  bytes: Buffer;
}

interface Current {
  id: string;
  options: SessionOptions;
  directory: string;
  name: string;
  startedAt: number;
  phase?: OpenPhase;
  waitingFor?: WaitingFor;
}

type There = "nothing" | "own" | "other" | { stale: Buffer };

/** The files that handles of this thread own. */
const owned = new Set<string>();

/**
 * Announces which session this process serves, by a sidecar.
 *
 * Calls are synchronous: each is wholly done when it returns, so that they take
 * effect in their order however fast they come, also right before an exit. They
 * take as long as the disk does to write a small file.
 *
 * The end of the process leaves the file where it is: readers judge by the
 * process. Whoever ends a session on purpose calls `release`, or lets `using` do so.
 */
export class Owner {
  /** Why the last call was not done; `undefined` if it was. */
  lastError: SidecarError | undefined;
  readonly #agent: string;
  readonly #version: string | null;
  readonly #serves: Serves | undefined;
  readonly #strict: boolean;
  readonly #identity: Identity = ownIdentity();
  #current: Current | undefined;
  #written: Written | undefined;
  #left: Written[] = [];
  #isBehind = true;
  #isReleased = false;

  private constructor(agent: string, options: AgentOptions) {
    this.#agent = agent;
    this.#version = options.version ?? null;
    this.#serves = options.serves;
    this.#strict = options.strict ?? false;
  }

  /** Announces that this process serves a session from now on. */
  static establish(agent: string, sessionId: string, options: AgentOptions & SessionOptions = {}): Owner {
    const owner = new Owner(agent, options);
    owner.#bestEffort(() => {
      checkAgent(agent);
      if (options.serves !== undefined) checkWord("serves", options.serves, SERVES);
      owner.#current = owner.#taken(sessionId, options);
      owner.#writeNew();
      owner.#clearLeftOvers();
    });
    return owner;
  }

  /**
   * Announces that the process has left its session for another one. What is not
   * said about directories is as it was.
   */
  switchSession(sessionId: string, options: SessionOptions = {}): boolean {
    return this.#bestEffort(() => {
      this.#requireOpen();
      const before = this.#current;
      const { workDir, directory } = before?.options ?? {};
      const isPlaced = options.directory !== undefined || options.sessionDirectory !== undefined;
      const next = this.#taken(sessionId, {
        ...(workDir === undefined ? {} : { workDir }),
        ...(directory === undefined || isPlaced ? {} : { directory }),
        ...options,
      });
      this.#current = next;
      this.#isBehind = true;
      if (before?.directory === next.directory && before.name === next.name) {
        this.#write();
        return;
      }
      const old = this.#written;
      this.#written = undefined;
      try {
        this.#writeNew();
      } finally {
        if (old !== undefined) this.#left.push(old);
        this.#removeLeft();
      }
    });
  }

  /** Announces what the conversation is doing. The same again costs nothing. */
  update(phase: OpenPhase, waitingFor?: WaitingFor): boolean {
    return this.#bestEffort(() => {
      const current = this.#requireOpen();
      checkWord("phase", phase, PHASES);
      const what = phase === "waiting" ? waitingFor : undefined;
      if (what !== undefined) checkWord("waitingFor", what, WAITS);
      if (current.phase !== phase || current.waitingFor !== what) {
        this.#isBehind = true;
        current.phase = phase;
        if (what === undefined) delete current.waitingFor;
        else current.waitingFor = what;
      }
      if (this.#isBehind) this.#write();
      this.#removeLeft();
    });
  }

  /** Announces that the process serves its session no longer: its file goes, and nothing is written any more. */
  release(): boolean {
    return this.#bestEffort(() => {
      this.#isReleased = true;
      if (this.#written !== undefined) this.#left.push(this.#written);
      this.#written = undefined;
      this.#removeLeft();
    });
  }

  /** Releases the session at the end of a `using` block. */
  [Symbol.dispose](): void {
    this.release();
  }

  /** Where the sidecar is; `undefined` after a release, or if it could not be written. */
  get path(): string | undefined {
    return this.#written?.file;
  }

  #bestEffort(step: () => void): boolean {
    try {
      step();
      this.lastError = undefined;
      return true;
    } catch (error) {
      this.lastError = error instanceof SidecarError ? error : failure("cannot write sidecar", error);
      if (this.#strict) throw this.lastError;
      return false;
    }
  }

  #requireOpen(): Current {
    if (this.#isReleased) throw new SidecarError("cannot write a sidecar: it was released", "released");
    if (this.#current === undefined) {
      throw new SidecarError("cannot write a sidecar: no session was announced", "not_established");
    }
    return this.#current;
  }

  #taken(id: string, options: SessionOptions): Current {
    checkSession(id);
    const workDir = absolute("workDir", options.workDir ?? ownDirectory());
    const startedAt = Date.now() / 1000;
    const session = { id, options: { ...options, workDir }, startedAt };
    if (options.sessionDirectory !== undefined) {
      return { ...session, directory: absolute("sessionDirectory", options.sessionDirectory), name: "runtime.json" };
    }
    const shared =
      options.directory === undefined
        ? path.join(commonPlace(), this.#agent)
        : absolute("directory", options.directory);
    return { ...session, directory: shared, name: id + SUFFIX };
  }

  #bytes(current: Current): Buffer {
    const { options } = current;
    const fields: Record<string, unknown> = {
      schema_version: 1,
      pid: process.pid,
      session_id: current.id,
      work_dir: options.workDir,
      hostname: os.hostname(),
      started_at: current.startedAt,
      [`${this.#agent.replaceAll("-", "_")}_version`]: this.#version,
      ...this.#identity,
      serves: this.#serves,
      phase: current.phase,
      waiting_for: current.waitingFor,
      transcript: options.transcript,
      client_pid: options.clientPid,
      resume: options.resume,
      endpoint: options.endpoint,
    };
    const bytes = Buffer.from(`${JSON.stringify(fields)}\n`);
    if (bytes.length > SIDECAR_BYTES_MAX || parseSidecar(bytes) === undefined) {
      throw new SidecarError("cannot write a sidecar that readers would refuse", "bad_argument");
    }
    return bytes;
  }

  /** Writes what is announced, in place of what we wrote before. */
  #write(): void {
    const bytes = this.#bytes(this.#requireOpen());
    const written = this.#written;
    if (written !== undefined && isInPlace(written)) {
      disk.replace(written.file, bytes);
      this.#written = { file: written.file, bytes };
      this.#isBehind = false;
      return;
    }
    // It was removed, or written over it.
    this.#written = undefined;
    try {
      this.#writeNew();
    } finally {
      if (written !== undefined && this.#writtenFile() !== written.file) owned.delete(written.file);
    }
  }

  #writtenFile(): string | undefined {
    return this.#written?.file;
  }

  #writeNew(): void {
    const current = this.#requireOpen();
    const bytes = this.#bytes(current);
    disk.makeDirectories(current.directory);
    const file = this.#claim(current, bytes);
    owned.add(file);
    this.#written = { file, bytes };
    this.#isBehind = false;
  }

  #claim(current: Current, bytes: Buffer): string {
    const file = path.join(current.directory, current.name);
    for (let take = 0; take < TAKES_MAX; take += 1) {
      const there = this.#whatIsThere(file, current);
      if (there === "other") break;
      if (there === "own") {
        disk.replace(file, bytes);
        return file;
      }
      if (there === "nothing") {
        if (madeNew(file, bytes)) return file;
      } else {
        takeAway(file, there.stale, current);
      }
    }
    for (let take = 0; take < SIBLINGS_MAX; take += 1) {
      const sibling = siblingOf(current);
      if (madeNew(sibling, bytes)) return sibling;
    }
    throw new SidecarError(`cannot write sidecar \`${file}\`: its names are taken`, "io_error");
  }

  #whatIsThere(file: string, current: Current): There {
    let bytes: Buffer | undefined;
    try {
      bytes = disk.read(file)?.bytes;
    } catch {
      return "other";
    }
    if (bytes === undefined) return "nothing";
    const sidecar = parseSidecar(bytes);
    if (sidecar === undefined) return "other";
    if (sidecar.session_id !== current.id && current.name !== "runtime.json") return "other";
    if (isSameProcess(sidecar, this.#identity)) {
      // What handles of other threads own is not known here.
      return isMainThread && !owned.has(file) ? "own" : "other";
    }
    return isStale(sidecar, file) ? { stale: bytes } : "other";
  }

  #removeLeft(): void {
    const still: Written[] = [];
    let failed: unknown;
    for (const written of this.#left) {
      try {
        if (isInPlace(written)) disk.remove(written.file);
        if (this.#written?.file !== written.file) owned.delete(written.file);
      } catch (error) {
        still.push(written);
        failed = error;
      }
    }
    this.#left = still;
    if (still[0] !== undefined) throw failure(`cannot remove sidecar \`${still[0].file}\``, failed);
  }

  /** Removes what dead writers left behind, and nothing else. */
  #clearLeftOvers(): void {
    const written = this.#written;
    const current = this.#current;
    if (written === undefined || current === undefined) return;
    const directory = path.dirname(written.file);
    let names: string[];
    let now: number;
    try {
      names = fs.readdirSync(directory).slice(0, LISTED_MAX);
      now = fs.statSync(written.file).mtimeMs;
    } catch {
      return;
    }
    for (const name of names) {
      const isTemporary = disk.isTemporary(name);
      if (!isTemporary && !isSibling(name, current.id)) continue;
      const file = path.join(directory, name);
      try {
        const there = disk.read(file);
        if (there === undefined) continue;
        const sidecar = parseSidecar(there.bytes);
        // One that is not whole is of a writer that was killed; no write takes an hour.
        const isLeft =
          sidecar === undefined
            ? isTemporary && now - there.modifiedMs > LEFT_OVER_AFTER_MS
            : isStale(sidecar, file);
        if (isLeft) disk.remove(file);
      } catch {
        // It stays.
      }
    }
  }
}

function isSibling(name: string, id: string): boolean {
  return name.startsWith(`${id}.claim-`) && /^[0-9a-f]+\.runtime\.json$/i.test(name.slice(id.length + 7));
}

function siblingOf(current: Current): string {
  return path.join(current.directory, `${current.id}.claim-${disk.digits()}${SUFFIX}`);
}

/** `false` if something has that name. */
function madeNew(file: string, bytes: Buffer): boolean {
  try {
    disk.makeNew(file, bytes);
    return true;
  } catch (error) {
    if (codeOf(error) === "EEXIST") return false;
    throw error;
  }
}

function readOr(file: string): Buffer | undefined {
  try {
    return disk.read(file)?.bytes;
  } catch {
    return undefined;
  }
}

function isInPlace(written: Written): boolean {
  return readOr(written.file)?.equals(written.bytes) ?? false;
}

/**
 * Takes a stale claim out of the way. Nothing is removed by a name that others
 * use: it gets a name of ours first, and goes only if it is what was judged.
 */
function isStale(sidecar: Sidecar, file: string): boolean {
  try {
    return disk.isTrusted(file) && isGone(sidecar, path.dirname(file));
  } catch {
    return false;
  }
}

/** The directory of the process. Node.js shows what is no Unicode as U+FFFD, which is another name. */
function ownDirectory(): string {
  const directory = process.cwd();
  if (directory.includes("\uFFFD") && !fs.existsSync(directory)) {
    throw refused(`the directory of the process is not Unicode: ${directory}`);
  }
  return directory;
}

function takeAway(file: string, stale: Buffer, current: Current): void {
  if (!readOr(file)?.equals(stale)) return;
  const aside = disk.moveAside(file);
  if (aside === undefined) return;
  if (readOr(aside)?.equals(stale)) {
    disk.remove(aside);
    return;
  }
  try {
    disk.putBack(aside, file);
  } catch (error) {
    if (codeOf(error) !== "EEXIST") throw error;
    disk.putBack(aside, siblingOf(current));
  }
}

/** What went wrong outside of these functions: in the system, or because an argument has another type. */
function failure(what: string, cause: unknown): SidecarError {
  const code = cause instanceof TypeError ? "bad_argument" : "io_error";
  return new SidecarError(`${what}: ${String(cause)}`, code, { cause });
}

/** A caller without types may hand in any word, which readers would take for none. */
function checkWord(field: string, word: unknown, words: Record<string, true>): void {
  if (typeof word === "string" && Object.hasOwn(words, word)) return;
  throw refused(`\`${field}\` is none of ${Object.keys(words).join(", ")}: ${JSON.stringify(word)}`);
}

function absolute(field: string, directory: string): string {
  if (typeof directory !== "string" || !path.isAbsolute(directory) || directory.includes("\0")) {
    throw refused(`\`${field}\` is not absolute: ${JSON.stringify(directory)}`);
  }
  return directory;
}

function commonPlace(): string {
  const named = process.env["XDG_STATE_HOME"];
  if (named !== undefined && path.isAbsolute(named)) return path.join(named, "agent-sessions");
  const home = os.homedir();
  if (!path.isAbsolute(home)) {
    throw new SidecarError("cannot find the common place of sidecars: there is no home directory", "no_home");
  }
  return path.join(home, ".local", "state", "agent-sessions");
}
