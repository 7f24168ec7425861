//! Code that adapters share, so that an agent's folder contains only what differs.

pub(crate) mod bad_lines;
pub(crate) mod database;
pub(crate) mod dialect;
pub(crate) mod document;
pub(crate) mod event_names;
pub(crate) mod folder;
pub(crate) mod held;
pub(crate) mod hex;
pub(crate) mod kimi_wire;
pub(crate) mod one_per_session;
#[cfg(test)]
pub(crate) mod program_tests;
pub(crate) mod prompt;
pub(crate) mod reading;
pub(crate) mod scan;
pub(crate) mod sidecar_facts;
pub(crate) mod title;
pub(crate) mod unlogged;
pub(crate) mod uuid;
