//! A file that has nothing in it but our hooks.

use whosup_core::adapter::HookCommand;

/// Stands for a program whose name needs no quotes anywhere.
const STAND_IN: &str = "/stand-in/whosup";

/// The program that a file runs, if it is one that `write` writes.
pub(super) fn program(
    text: &str,
    write: fn(&HookCommand) -> String,
    command: &HookCommand,
) -> Option<String> {
    if text == write(command) {
        return Some(command.program.clone());
    }
    let stand_in = HookCommand {
        program: STAND_IN.to_owned(),
        ..command.clone()
    };
    let pattern = write(&stand_in);
    let mut pieces = pattern.split(STAND_IN);
    let mut rest = text.strip_prefix(pieces.next()?)?;
    let mut program: Option<&str> = None;
    for piece in pieces {
        let (found, behind) = match program {
            None => rest.split_once(piece)?,
            Some(program) => (program, rest.strip_prefix(program)?.strip_prefix(piece)?),
        };
        program = Some(found);
        rest = behind;
    }
    let program = program.filter(|_| rest.is_empty())?;
    let written = HookCommand {
        program: program.to_owned(),
        ..command.clone()
    };
    // One with quotes is written in another way than it is called.
    (write(&written) == text).then(|| program.to_owned())
}
