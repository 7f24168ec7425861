//! The program as a whole: its command line, and its answers about real files,
//! real processes and a real terminal.

mod command_line;
mod help;
mod odd_files;
mod processes;
mod rights;
mod schema;
mod terminal;
mod world;
