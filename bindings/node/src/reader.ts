/** Reads sessions. The native part looks; here its answers get their types. */
import { load } from "../../native/load.cjs";
import type { Explanation, Snapshot } from "./document.js";
import { ReadError } from "./error.js";

/** Which sessions are listed. */
export interface ListOptions {
  /** Every session on disk. */
  all?: boolean;
  /** Sessions of these agents only: `["claude-code", "codex"]`. */
  agents?: string[];
  /** Sessions in this directory or below it only. */
  cwd?: string;
}

/** Which session is meant. */
export interface IdOptions {
  /** The agent's home that the session is in, where several have it. */
  home?: string;
}

/**
 * Lists sessions, as `whosup list --json` does: those that are live or unknown,
 * and those that died without an end in the last day. What could not be read is
 * in the answer's `problems`. Rejects with a {@link ReadError}.
 */
export async function listSessions(options: ListOptions = {}): Promise<Snapshot> {
  const { all = false, agents = [], cwd } = options;
  return (await told(load().listSessions(all, agents, cwd))) as Snapshot;
}

/**
 * Tells all that is known of one session, as `whosup show ID --json` does. The id
 * may be a beginning that no other session has, and may say the agent:
 * `codex:01a2`. Null if there is no such session. Rejects with a
 * {@link ReadError}, also where the session was not found and not every place
 * could be looked at.
 */
export async function session(id: string, options: IdOptions = {}): Promise<Snapshot | null> {
  return (await told(load().session(id, options.home))) as Snapshot | null;
}

/**
 * Tells whether a session is live: false only if it is known to have exited; null
 * if that can't be told, or if no such session is known. Rejects with a
 * {@link ReadError} if the id is malformed or means several sessions.
 */
export async function isLive(id: string, options: IdOptions = {}): Promise<boolean | null> {
  return (await told(load().isLive(id, options.home))) as boolean | null;
}

/**
 * Tells what the answer about a session rests on, as `whosup why ID --json` does:
 * `explanation` has it in sentences. Null if there is no such session. Rejects
 * as {@link session} does.
 */
export async function why(id: string, options: IdOptions = {}): Promise<Explanation | null> {
  return (await told(load().why(id, options.home))) as Explanation | null;
}

async function told(answer: Promise<string>): Promise<unknown> {
  try {
    return JSON.parse(await answer);
  } catch (error) {
    throw new ReadError(error instanceof Error ? error.message : String(error));
  }
}
