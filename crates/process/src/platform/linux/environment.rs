//! Named variables of a process's environment, and no others.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use crate::{Absent, Field, Process};

use super::Proc;
use super::details::{not_opened, tries};
use super::look::Look;
use super::open::Opened;
use super::raw::read_file;

/// The largest environment that is read.
const ENVIRONMENT_BYTES_MAX: usize = 1024 * 1024;

/// Reads the variables `names` as they were when the process executed its program.
pub(super) fn read_environment(
    table: &Proc,
    process: &Process,
    names: &[&str],
) -> Field<Vec<(String, OsString)>> {
    let mut look = Look::open(table).map_err(|error| not_opened(&error))?;
    let opened = Opened::open_same(&mut look, process)?;
    if let Some(reason) = opened.bodiless() {
        return Err(reason);
    }
    let mut buffer = Vec::new();
    read_whole(&opened, &mut buffer).map_err(|reason| opened.explain(reason, &mut look.buffer))?;
    if !opened.is_same(&mut look) {
        return Err(Absent::Vanished);
    }
    parse_environment(&buffer, names)
}

/// Reads an environment. One that is empty may be that of a process which is
/// just executing a program, or is on its way out.
fn read_whole(opened: &Opened, buffer: &mut Vec<u8>) -> Field<()> {
    for _ in tries() {
        read_file(opened.body(), "environ", ENVIRONMENT_BYTES_MAX, buffer)?;
        if !buffer.is_empty() {
            return Ok(());
        }
        let stat = opened.read_body_stat(buffer)?;
        if stat.is_exiting() {
            return Err(Absent::Exited);
        }
        if stat.environment.is_some_and(|span| span.bytes == 0) {
            buffer.clear();
            return Ok(());
        }
    }
    Err(Absent::Unsupported)
}

/// Finds variables in the text of an `environ` (proc_pid_environ(5)); the
/// first one of a name counts, as it does for getenv(3).
///
/// A process that writes a title may need the room of its environment and
/// leaves the end of the title, blanks or NULs, which are no `NAME=value`:
/// then a name that is not found may have been there.
///
/// # Errors
///
/// [`Absent::Overwritten`] if a name is missing where something was overwritten.
pub(super) fn parse_environment(bytes: &[u8], names: &[&str]) -> Field<Vec<(String, OsString)>> {
    let entries = bytes.strip_suffix(b"\0").unwrap_or(bytes);
    let entries: Vec<&[u8]> = entries.split(|byte| *byte == 0).collect();
    let find = |name: &&str| {
        let value_of = |entry: &&[u8]| {
            let value = entry.strip_prefix(name.as_bytes())?.strip_prefix(b"=")?;
            Some(OsString::from_vec(value.to_vec()))
        };
        Some(((*name).to_owned(), entries.iter().find_map(value_of)?))
    };
    let found: Vec<(String, OsString)> = names.iter().filter_map(find).collect();
    let is_overwritten = !bytes.is_empty() && entries.iter().any(|entry| !entry.contains(&b'='));
    if is_overwritten && found.len() < names.len() {
        return Err(Absent::Overwritten);
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(pairs: &[(&str, &str)]) -> Field<Vec<(String, OsString)>> {
        let pairs = pairs.iter();
        Ok(pairs
            .map(|(name, value)| ((*name).to_owned(), OsString::from(value)))
            .collect())
    }

    #[test]
    fn only_the_named_variables_are_found_and_by_their_whole_name() {
        let environ = b"HOMELY=no\0HOME=/h\0EMPTY=\0A=b=c\0SECRET=x\0HOME=/second\0";
        let names = ["HOME", "EMPTY", "A", "MISSING"];
        let expected = found(&[("HOME", "/h"), ("EMPTY", ""), ("A", "b=c")]);
        assert_eq!(parse_environment(environ, &names), expected);
    }

    #[test]
    fn an_empty_environment_has_no_variables() {
        assert_eq!(parse_environment(b"", &["HOME"]), found(&[]));
    }

    #[test]
    fn a_name_missing_from_an_overwritten_environment_is_not_known_to_be_missing() {
        for environ in [
            &b"\0\0\0\0"[..],
            b"\0",
            b"end of a title\0\0\0\0",
            b"tle\0\0HOME=/h\0",
            b"tle\0    \0HOME=/h\0",
        ] {
            let parsed = parse_environment(environ, &["GONE"]);
            assert_eq!(parsed, Err(Absent::Overwritten), "{environ:?}");
        }
        let parsed = parse_environment(b"tle\0\0HOME=/h\0", &["HOME"]);
        assert_eq!(parsed, found(&[("HOME", "/h")]));
    }
}
