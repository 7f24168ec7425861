//! The meaning of one record of a transcript.

use crate::adapter::phase::{Phase, WaitingFor};

/// The meaning of one record of a transcript.
#[derive(Debug, Default)]
pub(crate) struct Record<'a> {
    /// When it was written, in milliseconds since 1970.
    pub(crate) at_ms: Option<i64>,
    /// The date shows no activity: a list of sessions or a later start may write such a
    /// record long after the last turn.
    pub(crate) is_aside: bool,
    /// When the session was born.
    pub(crate) born_at_ms: Option<i64>,
    /// The message's id, if the agent writes a message again with more in it.
    pub(crate) id: Option<&'a str>,
    /// The texts that stand where a person's prompt does.
    pub(crate) typed: Vec<&'a str>,
    /// The same, recorded beside the conversation: no message, but perhaps the title.
    pub(crate) repeated: Vec<&'a str>,
    /// The model's reply.
    pub(crate) reply: Vec<&'a str>,
    /// The tools that it called.
    pub(crate) calls: Vec<&'a str>,
    /// What the record shows about the turn.
    pub(crate) step: Step<'a>,
    /// The model that was asked.
    pub(crate) model: Option<&'a str>,
    /// The agent's version.
    pub(crate) version: Option<&'a str>,
    /// No person is at a terminal.
    pub(crate) is_headless: Option<bool>,
    /// The directory that the session works in from here on.
    pub(crate) work_dir: Option<&'a str>,
    /// The branch there.
    pub(crate) git_branch: Option<&'a str>,
    /// The title that a person or a model gave; an empty one takes it back.
    pub(crate) title: Option<&'a str>,
    /// What the record reports about tokens.
    pub(crate) tokens: Option<TokenCount>,
    /// The request that the tokens are of, where several records may count them: the last
    /// of those has all of it.
    pub(crate) request: Option<&'a str>,
    /// The total so far, if the agent records that too.
    pub(crate) total: Option<TokenCount>,
    /// The model that the tokens are of, where that may be another than the session's.
    pub(crate) counted_model: Option<&'a str>,
    /// It was copied from another session.
    pub(crate) is_copied: bool,
    /// A copy of another session follows at once.
    pub(crate) begins_copy: bool,
    /// All records before it were copied from another session.
    pub(crate) ends_copy: bool,
    /// The session that used the tokens, where the agent records that: another one than the
    /// transcript's if the record was copied.
    pub(crate) used_by: Option<&'a str>,
    /// The context was replaced here, mostly by a summary of the earlier context.
    pub(crate) is_compaction: bool,
}

impl Record<'_> {
    /// The date, if the record shows activity.
    pub(crate) fn active_at_ms(&self) -> Option<i64> {
        self.at_ms.filter(|_| !self.is_aside)
    }
}

/// What a record shows about the turn.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) enum Step<'a> {
    /// Nothing: it may stand between two turns.
    #[default]
    Aside,
    /// The phase of the session while this record is the last; `None` if that is uncertain.
    Shows(Option<Phase>),
    /// The model called tools: they run, or a person is asked about them.
    Called,
    /// A person refused a call. That ends the turn, unless another call of the same reply
    /// was carried out.
    Refused,
    /// The turn begins.
    Begun,
    /// It ends, or is interrupted.
    Ended,
    /// A person is asked.
    Asked {
        /// The names of the request and of its subject.
        names: [Option<&'a str>; 2],
        waiting_for: Option<WaitingFor>,
    },
    /// The requests or calls with these names have an answer.
    Answered([Option<&'a str>; 2]),
    /// A call of the model ended. Whether the turn did is shown by the reply before.
    CallEnded,
    /// The model replied.
    Replied {
        /// The answers of tools go to the model next.
        calls_tools: bool,
    },
    /// The session ended.
    SessionEnded,
    /// The turn continues.
    Within,
}

/// The tokens that a record reports. `None` means not reported.
///
/// Some agents count the context and the requests in different records.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct TokenCount {
    /// The tokens in the context, as the agent's own interface counts them.
    pub(crate) context: Option<u64>,
    /// The most that the context can hold.
    pub(crate) window: Option<u64>,
    /// Input of the last request that was neither read from a cache nor written to it.
    pub(crate) input: Option<u64>,
    /// Input that was read from a cache.
    pub(crate) cached_input: Option<u64>,
    /// Input that was written to a cache.
    pub(crate) cache_writes: Option<u64>,
    /// Output, reasoning included.
    pub(crate) output: Option<u64>,
    /// Output that is reasoning.
    pub(crate) reasoning: Option<u64>,
    /// Those of `cache_writes` that are kept for an hour.
    pub(crate) long_cache_writes: Option<u64>,
    /// The cost of the request as the agent records it, in billionths of a dollar.
    pub(crate) cost_nano: Option<u64>,
}

impl TokenCount {
    /// Fills missing counts from an older record.
    #[cfg(test)]
    pub(super) fn or(self, older: Self) -> Self {
        let request = self.output.map_or(older, |_| self);
        Self {
            context: self.context.or(older.context),
            window: self.window.or(older.window),
            ..request
        }
    }
}
