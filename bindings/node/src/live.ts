/** Watches sessions and waits for them. The engine looks, in a thread of its own, and only when something happened. */
import type { Live, Native } from "../../native/load.cjs";
import type { Change, Waited } from "./document.js";
import type { Until } from "./generated.js";
import { answerOf, checkAgents, loaded, refused } from "./reader.js";

/** An `AbortSignal`, as far as it is used: not every project has the type. */
export interface AbortSignalLike {
  readonly aborted: boolean;
  throwIfAborted(): void;
  addEventListener(type: "abort", listener: () => void, options?: { once?: boolean }): void;
  removeEventListener(type: "abort", listener: () => void): void;
}

/** Which sessions are watched. */
export interface WatchOptions {
  /** Sessions of these agents only: `["claude-code", "codex"]`. */
  agents?: readonly string[];
  /** Sessions in this directory or below it only. */
  cwd?: string;
  /** Ends it: the iterator is done then. */
  signal?: AbortSignalLike;
}

/** What is waited for. */
export interface WaitOptions {
  /** A phase, or `exited`. */
  until: Until;
  /** The session; any session if it is left out. */
  id?: string;
  /** The agent's home that the session is in, where several have it. */
  home?: string;
  /** Any session of these agents. */
  agents?: readonly string[];
  /** Any session in this directory or below it. */
  cwd?: string;
  /** What is so already does not count. */
  next?: boolean;
  /** Gives up after so many milliseconds. */
  timeoutMs?: number;
  /** Ends it: the promise is rejected with the reason of the signal then. */
  signal?: AbortSignalLike;
}

/**
 * Watches sessions, as `whosup watch` does: first a `snapshot`, then each change.
 *
 *     for await (const change of watch()) console.log(change.kind);
 *
 * Leaving the loop, or `signal`, ends it and releases everything. Rejects with a
 * `ReadError` if nothing can be watched.
 */
export async function* watch(options: WatchOptions = {}): AsyncGenerator<Change, void, undefined> {
  const { agents = [], cwd, signal } = options;
  checkAgents("watch", agents);
  const watched = await Watched.begin((native, bell) => native.watch(bell, agents, cwd), signal);
  try {
    for (;;) {
      const change = await watched.next<Change>();
      if (change === undefined) return;
      yield change;
    }
  } finally {
    watched.close();
  }
}

/**
 * Waits until a session has come to a phase or has exited, as `whosup wait` does. The
 * `outcome` is `reached`, `exited` (before that), `unknown` (and nothing that runs can change
 * that) or `timed_out`. Rejects with a `ReadError` as `session` does.
 */
export async function wait(options: WaitOptions): Promise<Waited> {
  const { until, id, home, agents = [], cwd, next = false, timeoutMs, signal } = options;
  checkAgents("wait for", agents);
  signal?.throwIfAborted();
  const watched = await Watched.begin((native, bell) => native.wait(bell, until, next, id, home, agents, cwd), signal);
  const timer = timeoutMs === undefined ? undefined : setTimeout(() => watched.close(), timeoutMs);
  try {
    const waited = await watched.next<Waited>();
    signal?.throwIfAborted();
    return waited ?? { outcome: "timed_out", sessions: [] };
  } finally {
    clearTimeout(timer);
    watched.close();
  }
}

/** Something that is watched, until it is closed. */
class Watched {
  #live: Live | undefined;
  #isClosed = false;
  #ring = (): void => {};
  readonly #signal: AbortSignalLike | undefined;
  readonly #abort = (): void => this.close();

  private constructor(signal: AbortSignalLike | undefined) {
    this.#signal = signal;
    signal?.addEventListener("abort", this.#abort, { once: true });
    if (signal?.aborted) this.#isClosed = true;
  }

  static async begin(
    start: (native: Native, bell: () => void) => Promise<Live>,
    signal: AbortSignalLike | undefined,
  ): Promise<Watched> {
    const watched = new Watched(signal);
    if (watched.#isClosed) return watched;
    try {
      watched.#live = await started(() => start(loaded(), () => watched.#ring()));
    } catch (error) {
      watched.close();
      throw error;
    }
    // It was ended while it began.
    if (watched.#isClosed) watched.#live.close();
    return watched;
  }

  /** The next thing to read; `undefined` once it is closed. */
  async next<T>(): Promise<T | undefined> {
    for (;;) {
      if (this.#isClosed || this.#live === undefined) return undefined;
      const rung = new Promise<void>((resolve) => {
        this.#ring = resolve;
      });
      const reply = this.#live.take();
      if (reply !== null) return answerOf<T>(reply);
      await rung;
    }
  }

  close(): void {
    this.#isClosed = true;
    this.#signal?.removeEventListener("abort", this.#abort);
    this.#live?.close();
    this.#ring();
  }
}

async function started(start: () => Promise<Live>): Promise<Live> {
  let begun: Promise<Live>;
  try {
    begun = start();
  } catch (cause) {
    if (cause instanceof Error && cause.name === "ReadError") throw cause;
    // Arguments of other types are refused before anything is watched.
    throw refused(`cannot watch sessions: ${String(cause)}`, { cause });
  }
  return begun;
}
