// Tells whosup what opencode does. `whosup hooks install opencode` writes this file,
// `whosup hooks uninstall opencode` removes it.
import { spawn } from "node:child_process"

const PROGRAM = "PROGRAM"
const ARGUMENTS = ["hook", "opencode"]
/** How long one call may take. */
const CALL_MS_MAX = 2000
/** How many calls wait at most; what comes then is left out. */
const CALLS_WAITING_MAX = 200
/** How many sub-sessions are remembered. */
const SUB_SESSIONS_MAX = 1000

function call(payload) {
  return new Promise((resolve) => {
    const child = spawn(PROGRAM, ARGUMENTS, { stdio: ["pipe", "ignore", "ignore"] })
    const timer = setTimeout(() => child.kill(), CALL_MS_MAX)
    timer.unref?.()
    const done = () => {
      clearTimeout(timer)
      resolve()
    }
    child.on("error", done)
    child.on("close", done)
    child.stdin.on("error", () => {})
    child.stdin.end(JSON.stringify(payload))
  })
}

export const Whosup = async ({ directory }) => {
  /** The session that a sub-session works for. */
  const parents = new Map()
  /** The session that was created or prompted last. */
  let served
  let waiting = 0
  let last = Promise.resolve()

  // One after the other, in the order of what happened; opencode does not wait.
  function tell(name, session, more = {}) {
    if (!session || waiting >= CALLS_WAITING_MAX) return
    waiting += 1
    const payload = { hook_event_name: name, session_id: session, cwd: directory, ...more }
    last = last
      .then(() => call(payload))
      .catch(() => {})
      .finally(() => {
        waiting -= 1
      })
  }

  const top = (session) => {
    let found = session
    for (let depth = 0; depth < 16 && parents.has(found); depth += 1) found = parents.get(found)
    return found
  }

  function created(session) {
    if (!session.parentID) {
      served = session.id
      return tell("SessionStart", session.id, { source: "startup" })
    }
    parents.set(session.id, session.parentID)
    if (parents.size > SUB_SESSIONS_MAX) parents.delete(parents.keys().next().value)
    tell("SubagentStart", top(session.id), { agent_id: session.id })
  }

  function idle(session) {
    if (!parents.has(session)) return tell("Stop", session)
    tell("SubagentStop", top(session), { agent_id: session })
  }

  return {
    event: async ({ event }) => {
      const of = event.properties ?? {}
      switch (event.type) {
        case "session.created":
          return created(of.info ?? {})
        case "session.idle":
          return idle(of.sessionID)
        case "session.compacted":
          return tell("PostCompact", top(of.sessionID))
        case "session.deleted":
          return tell("SessionEnd", of.info?.parentID ? undefined : of.info?.id, { reason: "deleted" })
        case "permission.asked":
        case "permission.updated":
          return tell("PermissionRequest", top(of.sessionID))
        case "permission.replied":
          return tell("PermissionResult", top(of.sessionID))
        case "question.asked":
          return tell("Elicitation", top(of.sessionID))
        case "question.replied":
        case "question.rejected":
          return tell("ElicitationResult", top(of.sessionID))
      }
    },
    "chat.message": async (input, output) => {
      if (parents.has(input.sessionID)) return
      // Nothing else says that another session was chosen.
      if (served !== input.sessionID) {
        served = input.sessionID
        tell("SessionStart", input.sessionID, { source: "resume" })
      }
      const texts = (output?.parts ?? []).filter((part) => part.type === "text" && !part.synthetic)
      tell("UserPromptSubmit", input.sessionID, { prompt: texts.map((part) => part.text).join("\n") })
    },
    "tool.execute.before": async (input) => tell("PreToolUse", top(input.sessionID)),
    "tool.execute.after": async (input) => tell("PostToolUse", top(input.sessionID)),
  }
}
