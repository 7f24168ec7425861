//! Session records: what our own hooks wrote of a session, one file each at
//! `$XDG_STATE_HOME/whosup/sessions/AGENT/ID.json`.
//!
//! This module has the format and reads it; `schema/record.v1.schema.json`
//! describes it. A record is one more source of claims: it names the owner with
//! its whole identity, so a live one is proven.

mod format;
mod source;

pub use format::{
    RECORD_BYTES_MAX, RECORD_SCHEMA, RecordError, RecordedOwner, SessionRecord, parse_record,
};
pub use source::{records_root, scan_records};
