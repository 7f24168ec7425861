//! A system without events of directories: these checks are skipped.

use crate::commands::conformance::check::{Kit, Outcome};

#[expect(
    clippy::unnecessary_wraps,
    reason = "the same signature on every system"
)]
fn skipped() -> Result<Outcome, String> {
    let why = "this system does not report what happens in a directory";
    Ok(Outcome::Skipped(why.to_owned()))
}

pub(super) fn temporary(_: &Kit) -> Result<Outcome, String> {
    skipped()
}

pub(super) fn taken_over(_: &Kit) -> Result<Outcome, String> {
    skipped()
}

pub(super) fn name_taken(_: &Kit) -> Result<Outcome, String> {
    skipped()
}
