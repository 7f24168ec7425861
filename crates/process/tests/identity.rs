//! PIDs, stamps, hosts and boots as values.
#![allow(clippy::unwrap_used, reason = "a test fails by a panic")]

use whosup_process::{
    BootId, HostName, Pid, PidNamespace, Platform, ProbeError, StampKind, StartStamp,
};

#[test]
fn only_a_number_that_can_name_a_process_is_a_pid() {
    for raw in [1, 2, 4711, i64::from(i32::MAX)] {
        let pid = Pid::new(raw).unwrap();
        assert_eq!(i64::from(pid.get()), raw);
        assert_eq!(pid.to_string(), raw.to_string());
        assert_eq!(Pid::try_from(raw), Ok(pid));
    }
    for raw in [
        0,
        -1,
        i64::from(i32::MIN),
        i64::from(i32::MAX) + 1,
        i64::MAX,
    ] {
        let error = Pid::new(raw).unwrap_err();
        let text = format!("`{raw}` is not a process id (1 to 2147483647)");
        assert_eq!(error.to_string(), text);
    }
}

#[track_caller]
fn check_stamp(kind: StampKind, text: &str, stamp: &StartStamp, platform: Platform) {
    assert_eq!(StartStamp::parse(kind, text).as_ref(), Ok(stamp));
    assert_eq!(stamp.to_string(), text);
    assert_eq!(stamp.kind(), kind);
    assert_eq!(StampKind::from_name(kind.name()), Some(kind));
    assert_eq!(kind.platform(), platform);
    assert_eq!(stamp.is_same_as(&stamp.clone()), Some(true));
}

fn stamps() -> [(StampKind, &'static str, StartStamp, Platform); 4] {
    let ticks = StartStamp::LinuxTicks(8123);
    let times = StartStamp::DarwinTv {
        seconds: 1_790_000_000,
        microseconds: 7,
    };
    let date = StartStamp::DarwinDate("Fri Nov 27 21:00:00 2026".to_owned());
    let units = StartStamp::Filetime(134_083_872_000_000_000);
    [
        (StampKind::LinuxTicks, "8123", ticks, Platform::Linux),
        (
            StampKind::DarwinTv,
            "1790000000.000007",
            times,
            Platform::Darwin,
        ),
        (
            StampKind::DarwinDate,
            "Fri Nov 27 21:00:00 2026",
            date,
            Platform::Darwin,
        ),
        (
            StampKind::Filetime,
            "134083872000000000",
            units,
            Platform::Windows,
        ),
    ]
}

#[test]
fn a_stamp_of_each_kind_is_read_back_as_it_was_written() {
    for (kind, text, stamp, platform) in stamps() {
        check_stamp(kind, text, &stamp, platform);
    }
    assert_eq!(StampKind::from_name("linux"), None);
}

#[test]
fn stamps_of_two_kinds_are_neither_equal_nor_different() {
    for (one_kind, _, one, _) in stamps() {
        for (other_kind, _, other, _) in stamps() {
            let expected = (one_kind == other_kind).then_some(true);
            assert_eq!(one.is_same_as(&other), expected);
        }
    }
    let later = StartStamp::LinuxTicks(8124);
    let earlier = StartStamp::LinuxTicks(8123);
    assert_eq!(later.is_same_as(&earlier), Some(false));
}

#[test]
fn a_text_of_another_form_is_no_stamp() {
    for (kind, text) in [
        (StampKind::LinuxTicks, ""),
        (StampKind::LinuxTicks, "+5"),
        (StampKind::LinuxTicks, "-5"),
        (StampKind::LinuxTicks, "5.0"),
        (StampKind::LinuxTicks, " 5"),
        (StampKind::LinuxTicks, "18446744073709551616"),
        (StampKind::Filetime, "0x5"),
        (StampKind::DarwinTv, "5"),
        (StampKind::DarwinTv, "5.7"),
        (StampKind::DarwinTv, "5.0000007"),
        (StampKind::DarwinDate, " "),
    ] {
        let error = StartStamp::parse(kind, text).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("`{text}` is not a {kind} start stamp")
        );
    }
    let long = "9".repeat(10_000);
    let error = StartStamp::parse(StampKind::LinuxTicks, &long).unwrap_err();
    assert_eq!(error.text.len(), 64);
}

#[test]
fn this_platform_is_the_one_that_this_program_was_built_for() {
    let expected = match std::env::consts::OS {
        "linux" => Some(Platform::Linux),
        "macos" => Some(Platform::Darwin),
        "windows" => Some(Platform::Windows),
        _ => None,
    };
    assert_eq!(Platform::current(), expected);
}

#[test]
fn hosts_are_the_same_by_their_first_label_in_any_case() {
    let host = |name: &str| HostName(name.to_owned());
    assert!(host("box.local").is_same_host("BOX"));
    assert!(host("Box").is_same_host("box.example.org"));
    assert!(!host("box").is_same_host("box-2.local"));
    assert!(!host("").is_same_host(""));
    assert!(!host(".local").is_same_host(".local"));
}

#[test]
fn a_boot_id_is_a_uuid_in_any_case() {
    let text = "19c1d8ff-a55f-47c0-82a1-b0f1bc43623a";
    let boot = BootId::parse(text).unwrap();
    assert_eq!(boot.as_str(), text);
    assert_eq!(
        BootId::parse(&format!("{}\n", text.to_uppercase())),
        Some(boot)
    );
    for wrong in ["", "19c1d8ff", "19c1d8ffa55f47c082a1b0f1bc43623a", "none"] {
        assert_eq!(BootId::parse(wrong), None);
    }
    assert_eq!(BootId::parse(&text.replace('1', "g")), None);
    // `kern.boottime` drifts by microseconds within one boot (kin#653).
    assert_eq!(BootId::parse("1700000000.123456"), None);
    assert_eq!(PidNamespace::INITIAL.to_string(), "4026531836");
}

#[test]
fn errors_say_what_cannot_be_done_and_why() {
    let pid = Pid::new(4711).unwrap();
    let texts = [
        ProbeError::Process {
            pid,
            reason: whosup_process::Absent::PermissionDenied,
        },
        ProbeError::Hidden { pid },
        ProbeError::File {
            path: "/proc/stat".into(),
            reason: whosup_process::Absent::TooLarge { bytes_max: 5 },
        },
        ProbeError::NotOurs {
            root: "/proc".into(),
        },
        ProbeError::Unsupported,
    ]
    .map(|error| error.to_string());
    let expected = [
        "cannot inspect process 4711: permission denied",
        "cannot inspect process 4711: hidden by the mount options of /proc",
        "cannot read `/proc/stat`: larger than 5 bytes",
        "cannot use the process table at `/proc`: it does not show this process",
        "cannot inspect processes: not supported on this platform",
    ];
    assert_eq!(texts, expected);
}
