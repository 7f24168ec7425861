//! `stat` texts as kernels write them, and malformed ones.

use proptest::prelude::*;

use super::*;

/// A `stat` of PID 4711 with this name and these fields behind it.
fn stat_of(comm: &[u8], fields: &str) -> Vec<u8> {
    let mut text = b"4711 (".to_vec();
    text.extend_from_slice(comm);
    text.extend_from_slice(b") ");
    text.extend_from_slice(fields.as_bytes());
    text.push(b'\n');
    text
}

/// Seen on Linux 6.18: a shell that waits.
const SLEEPING: &str = "S 4700 4711 4700 34817 4711 4194304 115 0 2 0 0 0 0 0 20 0 1 0 8123 \
    2719744 229 18446744073709551615 94530000000000 94530000100000 140728000000000 0 0 0 0 \
    4096 65538 1 0 0 17 1 0 0 0 0 0 94530000200000 94530000300000 94531000000000 \
    140728000001000 140728000001011 140728000001011 140728000002000 0";

#[track_caller]
fn parse(comm: &[u8]) -> Stat {
    parse_stat(&stat_of(comm, SLEEPING)).unwrap()
}

#[test]
fn every_field_that_is_needed_is_read() {
    let stat = parse(b"sh");
    let pid = |raw| Pid::new(raw).unwrap();
    assert_eq!(stat.pid, pid(4711));
    assert_eq!(stat.comm, b"sh");
    assert_eq!(stat.run_state, RunState::Sleeping);
    assert_eq!(stat.ppid, Some(pid(4700)));
    assert_eq!(stat.process_group, 4711);
    assert_eq!(stat.unix_session, 4700);
    let tty = Tty {
        major: 136,
        minor: 1,
    };
    assert_eq!(stat.tty, Some(tty));
    assert_eq!(stat.foreground_group, 4711);
    assert!(!stat.is_kernel_thread && !stat.is_exiting());
    assert_eq!(stat.threads, 1);
    assert_eq!(stat.stamp(), StartStamp::LinuxTicks(8123));
    assert_eq!(stat.arguments.map(|span| span.bytes), Some(11));
    assert_eq!(stat.environment.map(|span| span.bytes), Some(989));
    let page_bytes = u64::try_from(rustix::param::page_size()).unwrap();
    assert_eq!(stat.rss_bytes(), Ok(229 * page_bytes));
    assert_eq!(stat.cpu_ticks, Ok(0));
    let busy = SLEEPING.replacen("115 0 2 0 0 0", "115 0 2 0 70 5", 1);
    let stat = parse_stat(&stat_of(b"sh", &busy)).unwrap();
    assert_eq!(stat.cpu_ticks, Ok(75));
    let process = stat.into_process(&Clock::new(Ok(0)));
    let tick_ms = 1_000 / rustix::param::clock_ticks_per_second();
    assert_eq!(process.cpu_ms, Ok(75 * tick_ms));
}

#[test]
fn start_stamp_is_counted_from_the_last_parenthesis() {
    for comm in [
        &b"tmux: server"[..],
        b"a) S 1 (b",
        b")",
        b"(((",
        b"",
        b"two\nlines) R 1",
        b"\xFF\xFE)",
    ] {
        let stat = parse(comm);
        assert_eq!(stat.comm, comm);
        assert_eq!(stat.start_ticks, 8123);
    }
}

#[test]
fn device_numbers_of_terminals_are_unpacked() {
    let tty = |packed| parse_tty(packed).map(|tty| (tty.major, tty.minor));
    assert_eq!(tty(0), None);
    assert_eq!(tty(34816), Some((136, 0)));
    assert_eq!(tty(1025), Some((4, 1)));
    // The 300th pseudo terminal: its minor number does not fit eight bits.
    assert_eq!(tty(0x0010_882C), Some((136, 300)));
    // A minor number so high that the packed one is negative.
    assert_eq!(tty(i32::MIN + 0x8800), Some((136, 0x8_0000)));
}

#[test]
fn a_parent_outside_of_the_namespace_is_none() {
    let outside = SLEEPING.replacen("S 4700", "S 0", 1);
    assert_eq!(parse_stat(&stat_of(b"init", &outside)).unwrap().ppid, None);
}

#[test]
fn arguments_that_we_may_not_locate_have_no_size() {
    let hidden = SLEEPING.replace("140728000001000 140728000001011", "0 0");
    let stat = parse_stat(&stat_of(b"sh", &hidden)).unwrap();
    assert_eq!(stat.arguments, None);
}

#[test]
fn a_stat_that_is_cut_short_or_wrong_is_malformed_and_not_zero() {
    let whole = stat_of(b"sh", SLEEPING);
    for length in 0..whole.len() {
        let parsed = parse_stat(&whole[..length]);
        assert!(
            matches!(parsed, Err(Absent::Malformed(_))),
            "{length} bytes"
        );
    }
    for wrong in [
        SLEEPING.replacen("S ", "SS ", 1),
        SLEEPING.replacen(" 8123 ", " -8123 ", 1),
        SLEEPING.replacen(" 8123 ", " 0x1F ", 1),
        SLEEPING.replacen(" 8123 ", " 99999999999999999999999 ", 1),
        SLEEPING.replacen(" 8123 ", "  ", 1),
        SLEEPING.replacen(" 4194304 ", " flags ", 1),
        SLEEPING.replacen(" 34817 ", " 99999999999 ", 1),
    ] {
        let parsed = parse_stat(&stat_of(b"sh", &wrong));
        assert!(matches!(parsed, Err(Absent::Malformed(_))), "{wrong}");
    }
    for pid in ["0", "-1", "2147483648", "", "x"] {
        let text = format!("{pid} (sh) {SLEEPING}\n");
        assert!(parse_stat(text.as_bytes()).is_err(), "{pid}");
    }
}

#[test]
fn a_resident_size_that_makes_no_sense_costs_no_other_field() {
    let odd = SLEEPING.replacen(" 229 ", " -5 ", 1);
    let stat = parse_stat(&stat_of(b"sh", &odd)).unwrap();
    assert!(matches!(stat.rss_bytes(), Err(Absent::Malformed(_))));
    assert_eq!(stat.start_ticks, 8123);
}

proptest! {
    #[test]
    fn any_name_leaves_pid_and_stamp_as_they_are(
        comm in prop::collection::vec(1_u8.., 0..64),
        ticks in any::<u64>(),
    ) {
        let fields = SLEEPING.replacen(" 8123 ", &format!(" {ticks} "), 1);
        let stat = parse_stat(&stat_of(&comm, &fields)).unwrap();
        prop_assert_eq!(stat.comm, comm);
        prop_assert_eq!(stat.pid.get(), 4711);
        prop_assert_eq!(stat.start_ticks, ticks);
    }

    #[test]
    fn any_bytes_are_parsed_or_malformed(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        if let Err(reason) = parse_stat(&bytes) {
            prop_assert!(matches!(reason, Absent::Malformed(_)));
        }
    }

    #[test]
    fn any_change_of_one_byte_is_parsed_or_malformed(at in 0_usize..300, byte in any::<u8>()) {
        let mut text = stat_of(b"sh", SLEEPING);
        let at = at % text.len();
        text[at] = byte;
        if let Err(reason) = parse_stat(&text) {
            prop_assert!(matches!(reason, Absent::Malformed(_)));
        }
    }
}

#[test]
fn numbers_of_any_length_are_read_as_they_stand() {
    let numbers = [
        "0",
        "-1",
        "00042",
        "999999999999999999",
        "-999999999999999999",
        "1000000000000000000",
        "18446744073709551615",
    ];
    for text in numbers {
        let right: i128 = text.parse().unwrap();
        assert_eq!(super::parse_number(text.as_bytes()), Some(right), "{text}");
    }
    for text in ["", "-", "--1", "+1", "1 ", "0x1", "184467440737095516150"] {
        assert_eq!(super::parse_number(text.as_bytes()), None, "{text}");
    }
}
