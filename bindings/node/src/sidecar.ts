import { whyNoSession } from "./name.js";

/** How long a sidecar may be, in bytes. */
export const SIDECAR_BYTES_MAX = 64 * 1024;

/** What names a process for ever, as far as it can be read. */
export interface Identity {
  process_start?: string;
  process_start_kind?: string;
  boot_id?: string;
  pid_namespace?: number;
  executable?: string;
}

/** The fields of a sidecar that tell whose it is. */
export interface Sidecar extends Identity {
  schema_version: 1;
  pid: number;
  session_id: string;
  work_dir: string;
  hostname: string;
  started_at: number;
}

const STRINGS = [
  "process_start",
  "process_start_kind",
  "boot_id",
  "executable",
  "serves",
  "phase",
  "waiting_for",
  "transcript",
  "endpoint",
];

/** Reads a sidecar strictly; `undefined` if it is none. */
export function parseSidecar(bytes: Uint8Array): Sidecar | undefined {
  if (bytes.byteLength > SIDECAR_BYTES_MAX) return undefined;
  let fields: unknown;
  try {
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
    fields = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (typeof fields !== "object" || fields === null || Array.isArray(fields)) return undefined;
  return isRight(fields as Record<string, unknown>) ? (fields as Sidecar) : undefined;
}

function isInteger(value: unknown, least: number, most: number): boolean {
  return Number.isInteger(value) && (value as number) >= least && (value as number) <= most;
}

function isRight(fields: Record<string, unknown>): boolean {
  const startedAt = fields["started_at"];
  return (
    fields["schema_version"] === 1 &&
    isInteger(fields["pid"], 0, 2 ** 31 - 1) &&
    whyNoSession(fields["session_id"]) === undefined &&
    typeof fields["work_dir"] === "string" &&
    fields["work_dir"] !== "" &&
    typeof fields["hostname"] === "string" &&
    typeof startedAt === "number" &&
    startedAt >= 1 &&
    startedAt <= 253_370_764_800 &&
    STRINGS.every((key) => fields[key] == null || typeof fields[key] === "string") &&
    (fields["pid_namespace"] == null || isInteger(fields["pid_namespace"], 1, Number.MAX_SAFE_INTEGER))
  );
}
