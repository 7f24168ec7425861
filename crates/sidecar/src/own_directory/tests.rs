//! What is planted harms nothing.

use std::io;

use super::{RETRIES_MAX, is_temporary, made_up_digits, retry, temporary_name};

#[cfg(unix)]
mod planted;

fn momentary(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::PermissionDenied
}

#[test]
fn a_refusal_that_goes_away_is_waited_out() {
    let mut refusals = 3;
    let mut waits = Vec::new();
    let step = || match refusals {
        0 => Ok(()),
        _ => {
            refusals -= 1;
            Err(io::ErrorKind::PermissionDenied.into())
        }
    };
    retry(step, momentary, |wait| waits.push(wait.as_millis())).unwrap();
    assert_eq!(waits, [5, 10, 15]);
}

#[test]
fn a_refusal_that_stays_is_returned_after_a_bounded_wait() {
    let mut waits = 0;
    let refused = || Err(io::ErrorKind::PermissionDenied.into());
    let error = retry(refused, momentary, |_| waits += 1).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
    assert_eq!(waits, RETRIES_MAX);
}

#[test]
fn any_other_error_is_returned_at_once() {
    let mut tries = 0;
    let full = || {
        tries += 1;
        Err(io::ErrorKind::StorageFull.into())
    };
    let error = retry(full, momentary, |_| panic!("it waits")).unwrap_err();
    assert_eq!((error.kind(), tries), (io::ErrorKind::StorageFull, 1));
}

#[test]
fn names_of_temporary_files_are_distinguished_from_all_others() {
    assert!(is_temporary(&temporary_name().into_string().unwrap()));
    assert_ne!(made_up_digits(), made_up_digits());
    for other in [
        ".sidecar-.tmp",
        ".sidecar-0123456789abcdeg.tmp",
        ".sidecar-0123456789abcdef",
        "sidecar-0123456789abcdef.tmp",
        "s1.runtime.json",
    ] {
        assert!(!is_temporary(other), "{other}");
    }
}
