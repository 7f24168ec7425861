/**
 * The documents that tell of sessions, as the schemas in `schema/` have them.
 *
 * Times are RFC 3339 in UTC. What is absent is null. New fields may come.
 */

import type { Confidence, Liveness, OpenPhase, Phase, Reason, WaitingFor } from "./generated.js";

/** One look at one machine. */
export interface Snapshot {
  schema_version: number;
  taken_at: string | null;
  host: Host;
  sessions: Session[];
  unattributed: Unattributed[];
  problems: Problem[];
}

/** One session, and what the answer about it rests on, in sentences. */
export interface Explanation extends Snapshot {
  explanation: string[];
}

/** Where PIDs mean what they mean here. */
export interface Host {
  hostname: string | null;
  boot_id: string | null;
  pid_namespace: number | null;
}

/** One session. */
export interface Session {
  agent: string;
  session_id: string;
  liveness: Liveness;
  reason: Reason;
  confidence: Confidence | null;
  phase: Phase | null;
  phase_since: string | null;
  phase_at_exit: OpenPhase | null;
  waiting_for: WaitingFor | null;
  waiting_on: { tool: string | null; text: string | null } | null;
  phase_word: string | null;
  orphan: boolean;
  superseded_by: string | null;
  parent_session_id: string | null;
  owner: Process | null;
  owner_shared: boolean;
  client: Process | null;
  client_ambiguous: boolean;
  other_live: OtherLive[];
  detached: boolean;
  headless: boolean;
  work_dir: string | null;
  /** The bytes in base64 of a path that is not UTF-8; so with every field `..._bytes` beside a path. */
  work_dir_bytes?: string;
  git_branch: string | null;
  title: string | null;
  model: string | null;
  agent_version: string | null;
  started_at: string | null;
  last_activity_at: string | null;
  ended_at: string | null;
  end_cause: string | null;
  cpu_seconds_at_least: number | null;
  context: { tokens: number; window: number | null; percent: number | null; window_assumed: boolean } | null;
  turn: { started_at: string | null; output_tokens: number | null } | null;
  usage: Usage | null;
  resources: Resources | null;
  pane: Pane | null;
  files: { transcript: string | null; transcript_bytes?: string; record: string | null; record_bytes?: string };
  endpoint: string | null;
  home: string | null;
  home_bytes?: string;
  dismissed: boolean;
  attach: Command | null;
  resume: Resume | null;
  evidence: Evidence[];
}

/** A process. */
export interface Process {
  pid: number;
  start_stamp: string;
  start_stamp_kind: string;
  started_at: string | null;
  executable: string | null;
  executable_bytes?: string;
  stopped: boolean;
  tty: string | null;
}

/** A live process of a session beside its owner. */
export interface OtherLive {
  pid: number;
  start_stamp: string;
  pane: Pane | null;
}

/** The tokens that a session used in all, its sub-agents left out. */
export interface Usage {
  input_tokens: number | null;
  cached_input_tokens: number | null;
  cache_write_tokens: number | null;
  output_tokens: number | null;
  reasoning_tokens: number | null;
  cost: { amount: number; currency: string; source: string } | null;
  tokens_without_price: number;
}

/** What the processes of a session use. */
export interface Resources {
  shared: boolean;
  owner: {
    cpu_percent: number | null;
    cpu_seconds: number | null;
    rss_bytes: number | null;
    pss_bytes: number | null;
    read_bytes: number | null;
    write_bytes: number | null;
    threads: number | null;
  } | null;
  tree: {
    processes: number;
    cpu_percent: number | null;
    cpu_seconds: number | null;
    rss_bytes: number | null;
  } | null;
}

/** The pane that shows a session. */
export interface Pane {
  host: string;
  server: { socket: string; socket_bytes?: string; pid: number | null; start_stamp: string | null } | null;
  session: string | null;
  window: string | null;
  pane: string | null;
  outer: Pane | null;
}

/** A command, for a person or a program to run. */
export interface Command {
  argv: string[];
  cwd: string | null;
  cwd_bytes?: string;
  env: Record<string, string>;
  env_bytes?: Record<string, string>;
}

/** A command that continues a session. */
export interface Resume extends Command {
  /**
   * False if it stands in a file that anybody may have written: run it only after a
   * person has read it.
   */
  trusted: boolean;
}

/** A piece of what an answer rests on. */
export interface Evidence {
  kind: string;
  path: string | null;
  path_bytes?: string;
  says: string;
  at: string | null;
  verdict: Liveness;
  reason: Reason;
}

/** An agent's process that no session is known of. */
export interface Unattributed {
  agent: string;
  pid: number;
  start_stamp: string;
  started_at: string | null;
  work_dir: string | null;
  work_dir_bytes?: string;
  pane: Pane | null;
  candidates: string[];
  candidate_titles: (string | null)[];
  reason: string;
}

/** Something that could not be read. */
export interface Problem {
  agent: string | null;
  path: string | null;
  path_bytes?: string;
  message: string;
}

/** A session that an ambiguous id may mean: `AGENT:SESSION_ID` and the home together mean it alone. */
export interface Candidate {
  agent: string;
  session_id: string;
  home: string;
  liveness: Liveness;
  work_dir: string | null;
}

/** What each change has: the place behind it, `EPOCH-SEQUENCE`, and when the look was taken that shows it. */
export interface InItsPlace {
  cursor: string;
  as_of: string | null;
}

/** A field as it was and as it is. */
export interface FieldChange {
  old: unknown;
  new: unknown;
}

/** One change of what is shown. */
export type Change = InItsPlace &
  (
    | ({ kind: "snapshot" } & Snapshot)
    | { kind: "added"; session: Session }
    | { kind: "changed"; agent: string; session_id: string; home: string | null; changes: Record<string, FieldChange> }
    | { kind: "removed"; why: "exited" | "filtered" | "hidden"; session: Session }
    | { kind: "unattributed"; unattributed: Unattributed[] }
    | { kind: "problems"; problems: Problem[] }
  );

/** What came of waiting, and of which sessions. */
export interface Waited {
  outcome: "reached" | "exited" | "unknown" | "timed_out";
  sessions: Session[];
}
