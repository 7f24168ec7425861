/** Reads sessions. The native part looks; here its answers get their types. */
import { type Native, load } from "../../native/load.cjs";
import type { Candidate, Explanation, Snapshot } from "./document.js";
import { ReadError } from "./error.js";
import type { Liveness, ReadErrorCode } from "./generated.js";

/** Which sessions are listed. */
export interface ListOptions {
  /** Every session on disk. */
  all?: boolean;
  /** Sessions of these agents only: `["claude-code", "codex"]`. */
  agents?: readonly string[];
  /** Sessions in this directory or below it only. */
  cwd?: string;
}

/** Which session is meant. */
export interface IdOptions {
  /** The agent's home that the session is in, where several have it. */
  home?: string;
}

/**
 * Lists sessions, as `whosup list --json` does: live and unknown ones, and those that
 * crashed in the last 24 hours. What could not be read is in `problems`. Rejects with a
 * {@link ReadError}.
 */
export async function listSessions(options: ListOptions = {}): Promise<Snapshot> {
  const { all = false, agents = [], cwd } = options;
  checkAgents("list", agents);
  return ask<Snapshot>((native) => native.listSessions(all, agents, cwd));
}

/**
 * Describes one session, as `whosup show ID --json` does. The id is the session ID or a
 * unique prefix, with the agent before it if two agents share that: `codex:01a2`. Rejects
 * with a {@link ReadError}: `code` is `no_such_session` if there is none, and `unreadable`
 * if none was found and some places could not be searched.
 */
export async function session(id: string, options: IdOptions = {}): Promise<Snapshot> {
  return ask<Snapshot>((native) => native.session(id, options.home));
}

/**
 * Reports whether a session is live: `exited` only if that is proven, and `none` only if
 * every place was searched and there is no such session; `unknown` if either cannot be
 * decided. Rejects with a {@link ReadError} if the id is malformed or means several
 * sessions.
 */
export async function liveness(id: string, options: IdOptions = {}): Promise<Liveness | "none"> {
  return ask<Liveness | "none">((native) => native.liveness(id, options.home));
}

/**
 * Explains the answer about a session, as `whosup why ID --json` does: `explanation` has
 * the evidence in sentences. Rejects as {@link session} does.
 */
export async function why(id: string, options: IdOptions = {}): Promise<Explanation> {
  return ask<Explanation>((native) => native.why(id, options.home));
}

type Reply<T> = { answer: T } | { error: { code: ReadErrorCode; message: string; candidates: Candidate[] } };

async function ask<T>(question: (native: Native) => Promise<string>): Promise<T> {
  const native = loaded();
  let answered: Promise<string>;
  try {
    answered = question(native);
  } catch (cause) {
    // Arguments of other types are refused before anything is asked.
    throw refused(`cannot read sessions: ${String(cause)}`, { cause });
  }
  return answerOf<T>(await answered);
}

/** The answer in a reply of the native part. @internal */
export function answerOf<T>(json: string): T {
  const reply = JSON.parse(json) as Reply<T>;
  if ("error" in reply) throw new ReadError(reply.error.message, reply.error.code, reply.error.candidates);
  return reply.answer;
}

/** @internal */
export function checkAgents(what: string, agents: unknown): void {
  if (!Array.isArray(agents) || !agents.every((name) => typeof name === "string")) {
    throw refused(`cannot ${what} sessions: \`agents\` must be an array of names such as ["codex"], not ${shown(agents)}`);
  }
}

/** @internal */
export function loaded(): Native {
  try {
    return load();
  } catch (cause) {
    throw new ReadError((cause as Error).message, "native_missing", [], { cause });
  }
}

/** @internal */
export function refused(message: string, options?: ErrorOptions): ReadError {
  return new ReadError(message, "bad_argument", [], options);
}

function shown(value: unknown): string {
  return JSON.stringify(value) ?? String(value);
}
