//! No parser panics, whatever bytes it is given, and none makes up an answer.

use proptest::prelude::*;

use super::argv::parse_command_line;
use super::environment::parse_environment;
use super::holders::parse_fdinfo;
use super::mount::{MountName, parse_proc_mount};
use super::status::Status;
use crate::Absent;

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let any_bytes = prop::collection::vec(any::<u8>(), 0..200);
    let likely = "[A-Za-z0-9:=,\\-\t \n\u{0}]{0,200}".prop_map(String::into_bytes);
    prop_oneof![any_bytes, likely]
}

proptest! {
    #[test]
    fn a_status_of_any_bytes_is_read_or_malformed(text in bytes()) {
        let status = Status(&text);
        for line in ["Tgid", "Uid", "CapEff"] {
            let mut with_line = text.clone();
            with_line.extend_from_slice(format!("\n{line}:\t").as_bytes());
            with_line.extend_from_slice(&text);
            let status = Status(&with_line);
            let _ = (status.process_id(), status.effective_uid(), status.effective_capabilities());
        }
        if let Ok(pids) = status.inner_pids() {
            prop_assert!(!pids.is_empty());
        }
    }

    #[test]
    fn a_command_line_of_any_bytes_keeps_them_or_is_a_title(
        text in bytes(),
        size in prop::option::of(0_u64..300),
    ) {
        use std::os::unix::ffi::OsStrExt;
        let line = parse_command_line(&text, size);
        if line.title.is_none() {
            let parts: Vec<&[u8]> = line.argv.iter().map(|part| part.as_bytes()).collect();
            let mut joined = parts.join(&0);
            joined.push(0);
            let terminated = if text.ends_with(&[0]) || text.is_empty() {
                text
            } else {
                [text, vec![0]].concat()
            };
            prop_assert!(joined == terminated || (parts.is_empty() && terminated.is_empty()));
        } else {
            prop_assert_eq!(line.argv.len(), 1);
        }
    }

    #[test]
    fn an_environment_of_any_bytes_has_no_variable_that_was_not_asked(text in bytes()) {
        match parse_environment(&text, &["A", "HOME"]) {
            Ok(found) => {
                prop_assert!(found.iter().all(|(name, _)| name == "A" || name == "HOME"));
            }
            Err(reason) => prop_assert_eq!(reason, Absent::Overwritten),
        }
    }

    #[test]
    fn mounts_and_descriptors_of_any_bytes_are_read_or_malformed(text in bytes()) {
        let mount = parse_proc_mount(&text, MountName::Point(b"/proc"));
        prop_assert!(matches!(mount, Ok(_) | Err(Absent::Malformed(_))));
        let mut line = b"22 27 0:21 / /proc rw - proc proc ".to_vec();
        line.extend_from_slice(&text);
        let mount = parse_proc_mount(&line, MountName::Id(22));
        prop_assert!(matches!(mount, Ok(_) | Err(Absent::Malformed(_))));
        let fdinfo = [&b"flags:\t0100002\nlock:\t"[..], &text].concat();
        prop_assert!(matches!(parse_fdinfo(&fdinfo), Ok(_) | Err(Absent::Malformed(_))));
    }
}
