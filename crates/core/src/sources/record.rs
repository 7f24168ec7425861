//! Session records: what our own hooks wrote about a session, one file each at
//! `$XDG_STATE_HOME/whosup/sessions/AGENT/ID.json`, and beside it `ID.jsonl`, the
//! event log. The log is authoritative, the record is its [`fold`](fn@fold).
//!
//! This module reads the format, which `schema/record.v1.schema.json` describes. A record is
//! one more source of claims. It names the owner with the full process identity, so that a
//! live owner is proven.

mod claims;
mod fold;
mod format;
mod heard;
mod history;
mod log;
mod owner;
mod owners;
mod same_home;
mod shown;
mod source;
mod stored;
mod timeline;

pub use claims::claim_of_history;
pub use fold::{Folded, apply, fold, fold_on};
pub use format::{RECORD_BYTES_MAX, RECORD_SCHEMA, RecordError, SessionRecord, parse_record};
pub use heard::{EndCause, Heard, HeardCpu, PROMPT_CHARS_MAX, PaneHint};
pub use history::{
    HISTORY_BYTES_MAX, Histories, History, HistoryEvent, HistoryLine, histories_root_of,
    history_name, parse_history,
};
pub use log::{
    LINE_BYTES_MAX, LogLine, LoggedEnd, LoggedEvent, parse_line, passed_on_line, record_line,
};
pub use owner::RecordedOwner;
pub use owners::{Ancestor, CHAIN_MAX, KnownOwner, OWNERS_MAX, Owners};
pub(crate) use same_home::name_homes_alike;
pub use shown::Shown;
pub use source::scan_records;
pub use stored::{
    LOG_BYTES_MAX, StoredRecord, ended_root_of, read_records, records_root, records_root_of,
};
pub use timeline::{PhaseSpan, SessionTimeline, read_timeline};
