import * as fs from "node:fs";
import * as os from "node:os";

import { codeOf } from "./error.js";
import type { Identity, Sidecar } from "./sidecar.js";

const INITIAL_PID_NAMESPACE = 0xeffffffc;
const INITIAL_TIME_NAMESPACE = 0xeffffffa;
const PROCESSES_MAX = 100_000;
const SLACK_S = 2;
/** Where start stamps of a kind come from. */
const PLATFORMS = new Map<string, string>([
  ["linux-ticks", "linux"],
  ["darwin-tv", "darwin"],
  ["darwin-date", "darwin"],
  ["filetime", "win32"],
]);
/** A thread of the kernel (PF_KTHREAD). */
const KERNEL_THREAD = 0x200000;
/**
 * File systems that machines share, by the magic number of statfs(2): NFS, SMB
 * (three), 9p, FUSE, Ceph, Lustre, GPFS, AFS (two), Coda.
 */
const SHARED = new Set([
  0x6969, 0x517b, 0xff534d42, 0xfe534d42, 0x01021997, 0x65735546, 0x00c36400, 0x0bd00bd0, 0x47504653, 0x5346414f,
  0x6b414653, 0x73757245,
]);

function read(path: string): string | undefined {
  try {
    // The name of a program may be bytes of anything.
    return fs.readFileSync(path, "latin1");
  } catch {
    return undefined;
  }
}

function link(path: string): string | undefined {
  try {
    return fs.readlinkSync(path);
  } catch {
    return undefined;
  }
}

function namespace(kind: string): number | undefined {
  const found = /\[(\d+)\]/.exec(link(`/proc/self/ns/${kind}`) ?? "");
  return found?.[1] === undefined ? undefined : Number(found[1]);
}

function isProcOurs(): boolean {
  return link("/proc/self") === String(process.pid);
}

/** The fields of `stat` from the state on: the name before it may have anything in it. */
function stat(pid: number): string[] | undefined {
  const text = read(`/proc/${pid}/stat`);
  const fields = text?.slice(text.lastIndexOf(")") + 1).trim().split(/\s+/);
  return fields !== undefined && fields.length > 19 ? fields : undefined;
}

function bootId(): string | undefined {
  return read("/proc/sys/kernel/random/boot_id")?.trim().toLowerCase();
}

function isStampForAll(): boolean {
  const own = namespace("time");
  return own === undefined || own === INITIAL_TIME_NAMESPACE;
}

/** What names this process for ever, as far as it can be read. */
export function ownIdentity(): Identity {
  const identity: Identity = {};
  const start = isProcOurs() && isStampForAll() ? stat(process.pid)?.[19] : undefined;
  if (start !== undefined) {
    identity.process_start = start;
    identity.process_start_kind = "linux-ticks";
  }
  const boot = bootId();
  if (boot !== undefined) identity.boot_id = boot;
  const own = namespace("pid");
  if (own !== undefined) identity.pid_namespace = own;
  const executable = link("/proc/self/exe");
  if (executable !== undefined && fs.existsSync(executable)) identity.executable = executable;
  return identity;
}

/** Whether a sidecar names this very process. */
export function isSameProcess(sidecar: Sidecar, identity: Identity): boolean {
  const keys = ["process_start", "process_start_kind", "boot_id", "pid_namespace"] as const;
  return (
    sidecar.pid === process.pid &&
    identity.process_start !== undefined &&
    keys.every((key) => (sidecar[key] ?? undefined) === identity[key])
  );
}

/** Whether the process that a sidecar names is provably gone. */
export function isGone(sidecar: Sidecar, directory: string): boolean {
  if (sidecar.pid === 0) return true;
  const platform = PLATFORMS.get(sidecar.process_start_kind ?? "") ?? process.platform;
  if (platform !== process.platform) return false;
  const label = (name: string): string => (name.split(".")[0] ?? "").toLowerCase();
  const isSameHost = label(os.hostname()) !== "" && label(os.hostname()) === label(sidecar.hostname);
  const ours = bootId();
  if (sidecar.boot_id && ours) {
    if (sidecar.boot_id.trim().toLowerCase() !== ours) {
      const booted = /^btime (\d+)$/m.exec(read("/proc/stat") ?? "")?.[1];
      return (
        isSameHost && booted !== undefined && sidecar.started_at < Number(booted) - SLACK_S && !isShared(directory)
      );
    }
  } else if (!isSameHost || isShared(directory)) {
    return false;
  }
  return isNumberOfHere(sidecar.pid_namespace ?? undefined) && hasExited(sidecar);
}

function isNumberOfHere(named: number | undefined): boolean {
  const ours = namespace("pid");
  if (named !== undefined) return named === ours;
  // A system without PID namespaces has but one.
  if (ours === undefined) return process.platform !== "linux";
  return ours === INITIAL_PID_NAMESPACE && !areThereOthers();
}

/** Whether processes of nested PID namespaces may be about. */
function areThereOthers(): boolean {
  try {
    const names = fs.readdirSync("/proc").slice(0, PROCESSES_MAX);
    return names
      .filter((name) => /^\d+$/.test(name))
      .some((name) => /^NSpid:\s*\d+\s+\d+/m.test(read(`/proc/${name}/status`) ?? ""));
  } catch {
    return true;
  }
}

function hasExited(sidecar: Sidecar): boolean {
  try {
    process.kill(sidecar.pid, 0);
  } catch (error) {
    // Nothing else says that there is none.
    if (codeOf(error) === "ESRCH") return true;
  }
  if (sidecar.process_start_kind !== "linux-ticks" || !isProcOurs()) return false;
  const fields = stat(sidecar.pid);
  if (fields === undefined) return false;
  const isZombie = (fields[0] === "Z" || fields[0] === "X") && Number(fields[17]) <= 1;
  if (isZombie || (Number(fields[6]) & KERNEL_THREAD) !== 0) return true;
  const group = /^Tgid:\s*(\d+)$/m.exec(read(`/proc/${sidecar.pid}/status`) ?? "")?.[1];
  // A number that is a thread's, and no process's.
  if (group !== undefined && Number(group) !== sidecar.pid) return true;
  return sidecar.process_start != null && isStampForAll() && fields[19] !== sidecar.process_start;
}

/** Whether machines may share the file system of a directory. */
function isShared(directory: string): boolean {
  if (process.platform === "win32") return directory.startsWith("\\\\");
  if (process.platform !== "linux") return false;
  try {
    return SHARED.has(fs.statfsSync(directory).type >>> 0);
  } catch {
    return true;
  }
}
