// What the compiler accepts and refuses. A test compiles it; nothing runs it.
import { Owner, ReadError, listSessions, liveness, session, wait, watch, why } from "../dist/esm/index.js";
import type {
  AbortSignalLike,
  Candidate,
  Change,
  Confidence,
  Explanation,
  Liveness,
  OpenPhase,
  Phase,
  ReadErrorCode,
  Reason,
  SidecarErrorCode,
  Snapshot,
  Waited,
  WaitingFor,
} from "../dist/esm/index.js";

export const list: Promise<Snapshot> = listSessions({ all: true, agents: ["codex"], cwd: "/" });
export const one: Promise<Snapshot> = session("s1", { home: "/h" });
export const answer: Promise<Liveness | "none"> = liveness("s1");
export const because: Promise<Explanation> = why("s1");
// @ts-expect-error
listSessions({ agent: "codex" });
// @ts-expect-error
listSessions({ agents: "codex" });
// @ts-expect-error
export const isDead = (await liveness("s1")) === "dead";

const row = (await session("s1")).sessions[0]!;
export const liveOrNot: Liveness = row.liveness;
export const reason: Reason = row.reason;
export const confidence: Confidence | null = row.confidence;
export const phase: Phase | null = row.phase;
export const phaseAtExit: OpenPhase | null = row.phase_at_exit;
export const waitingFor: WaitingFor | null = row.waiting_for;
// @ts-expect-error
export const isNone = row.liveness === "none";
// @ts-expect-error
export const isBecause = row.reason === "because";

export function codeOf(error: ReadError): [ReadErrorCode, Candidate | undefined] {
  // @ts-expect-error
  if (error.code === "gone") return ["ambiguous", undefined];
  return [error.code, error.candidates[0]];
}

export function announce(): SidecarErrorCode | undefined {
  using owner = Owner.establish("my-agent", "s1", { serves: "one" });
  owner.update("waiting", "question");
  // @ts-expect-error
  owner.update("ended");
  // @ts-expect-error
  owner.update("waiting", "lunch");
  return owner.lastError?.code;
}

export async function watches(signal: AbortSignalLike): Promise<unknown> {
  for await (const change of watch({ agents: ["codex"], cwd: "/", signal })) {
    const one: Change = change;
    if (one.kind === "changed") return one.changes["phase"]?.new;
    // @ts-expect-error
    if (one.kind === "vanished") return null;
    if (one.kind === "removed") return [one.why, one.session.session_id];
  }
  const waited: Waited = await wait({ id: "s1", until: "waiting", timeoutMs: 1_000, signal });
  // @ts-expect-error
  await wait({ id: "s1", until: "lunch" });
  return waited.outcome === "reached" && waited.sessions[0]?.phase;
}
