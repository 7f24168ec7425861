//! What the kernel counts for a process beyond its `stat`.

use crate::{Absent, Field, Process, StorageBytes};

use super::Proc;
use super::details::not_opened;
use super::look::Look;
use super::open::Opened;
use super::raw::read_file;

/// More than the kernel writes to `io` or `smaps_rollup`: some twenty numbers with names.
const BYTES_MAX: usize = 16 * 1024;

/// Reads `read_bytes` and `write_bytes` of `io` (proc_pid_io(5)).
pub(super) fn read_storage_bytes(table: &Proc, process: &Process) -> Field<StorageBytes> {
    read_counted(table, process, "io", |text| {
        Ok(StorageBytes {
            read: number(text, "read_bytes")?,
            written: number(text, "write_bytes")?,
        })
    })
}

/// Reads `Pss` of `smaps_rollup` (Linux 4.14 or newer).
pub(super) fn read_pss_bytes(table: &Proc, process: &Process) -> Field<u64> {
    read_counted(table, process, "smaps_rollup", |text| {
        let bytes = number(text, "Pss")?.checked_mul(1024);
        bytes.ok_or_else(|| malformed("Pss"))
    })
}

fn read_counted<T>(
    table: &Proc,
    process: &Process,
    name: &str,
    parse: impl FnOnce(&[u8]) -> Field<T>,
) -> Field<T> {
    let mut look = Look::open(table).map_err(|error| not_opened(&error))?;
    let opened = Opened::open_same(&mut look, process)?;
    if let Some(reason) = opened.bodiless() {
        return Err(reason);
    }
    let parsed = read_file(opened.dir(), name, BYTES_MAX, &mut look.buffer)
        .map_err(|reason| opened.explain(reason, &mut look.buffer))
        .and_then(|()| parse(&look.buffer))?;
    if !opened.is_same(&mut look) {
        return Err(Absent::Vanished);
    }
    Ok(parsed)
}

/// The number behind `NAME:`.
fn number(text: &[u8], name: &str) -> Field<u64> {
    let mut lines = text.split(|byte| *byte == b'\n');
    let value = lines.find_map(|line| line.strip_prefix(name.as_bytes())?.strip_prefix(b":"));
    let words = value.and_then(|value| std::str::from_utf8(value).ok());
    let word = words.and_then(|words| words.split_ascii_whitespace().next());
    word.and_then(|word| word.parse().ok())
        .ok_or_else(|| malformed(name))
}

fn malformed(name: &str) -> Absent {
    Absent::Malformed(format!("`{name}`"))
}

#[cfg(test)]
mod tests {
    use super::number;

    #[test]
    fn numbers_are_found_by_their_whole_name() {
        let text =
            b"rchar: 1\ncancelled_write_bytes: 2\nwrite_bytes: 3\nPss_Dirty: 4 kB\nPss:   5 kB\n";
        assert_eq!(number(text, "write_bytes"), Ok(3));
        assert_eq!(number(text, "Pss"), Ok(5));
        for garbage in [
            &b"Pss: x\n"[..],
            b"Pss:\n",
            b"Pss: -1 kB\n",
            b"",
            b"Pss: \xFF",
        ] {
            assert!(number(garbage, "Pss").is_err(), "{garbage:?}");
        }
    }
}
