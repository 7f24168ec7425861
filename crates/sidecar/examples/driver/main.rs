//! The smallest agent: it obeys the commands of `whosup conformance` on standard
//! input (see `docs/conformance.md`), and announces its sessions.
//!
//! `whosup conformance -- target/debug/examples/driver`

mod protocol;

fn main() -> std::io::Result<()> {
    protocol::serve()
}
