//! The commands, run in made-up worlds: a temporary home, a recorded process
//! table, a clock that stands still.

mod answers;
mod candidates;
mod list;
mod one_session;
mod process;
mod world;
