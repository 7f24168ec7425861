//! The program as a whole: its command line, and its answers about real files,
//! real processes and a real terminal.

#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]
#![allow(clippy::print_stderr, reason = "what is skipped is said")]

mod after_end;
mod at_once;
mod attach;
mod chance;
mod command_line;
mod completion;
mod dead_pane;
mod doctor;
mod doctor_findings;
mod hanging_mount;
mod help;
mod homes;
mod hook_owners;
mod hook_panes;
mod hooks;
mod hooks_input;
mod hooks_install;
mod hooks_killed;
mod hooks_killed_together;
mod hooks_model;
mod hooks_store;
mod limits;
mod list;
mod man;
mod many_panes;
mod notifications;
mod notify;
mod odd_files;
mod processes;
mod recovery;
mod retention;
mod rights;
mod safety;
mod sandboxes;
mod schema;
mod send;
mod service;
mod shell_agent;
mod status;
mod stop;
mod sweep;
mod terminal;
mod top;
mod usage;
mod verbose;
mod wait;
mod watch;
mod watching;
mod world;
