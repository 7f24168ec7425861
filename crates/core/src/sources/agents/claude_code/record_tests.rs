use super::*;

const ID: &str = "0a022b20-e8f2-410e-9552-8385582a8e8b";

fn parse(fields: &str) -> Result<Record, RecordError> {
    parse_record(format!(r#"{{"pid":24420,"sessionId":"{ID}"{fields}}}"#).as_bytes())
}

fn record(fields: &str) -> Record {
    parse(fields).unwrap()
}

#[test]
fn a_start_of_digits_is_clock_ticks() {
    assert_eq!(
        record(r#","procStart":"56838""#).stamp,
        Some(StartStamp::LinuxTicks(56_838))
    );
}

#[test]
fn a_start_that_is_a_date_is_of_macos() {
    let date = "Fri Nov 27 20:52:50 2026";
    assert_eq!(
        record(&format!(r#","procStart":"{date}""#)).stamp,
        Some(StartStamp::DarwinDate(date.to_owned()))
    );
}

#[test]
fn a_start_of_another_form_is_no_start() {
    for other in [
        "",
        "soon",
        "linux:56838",
        "-5",
        "5.5",
        "134088439700000000",
        "20:52",
        "Fri Nov 27",
    ] {
        let record = record(&format!(r#","procStart":"{other}""#));
        assert_eq!(record.stamp, None, "{other}");
        assert!(record.says().ends_with("no start"));
    }
    let number = record(r#","procStart":56838"#);
    assert_eq!(number.stamp, None);
    assert_eq!(number.odd_fields.len(), 1);
}

#[test]
fn the_domain_of_its_pid_names_a_namespace_or_nothing() {
    let namespace = |domain: &str| record(&format!(r#","pidDomain":"{domain}""#)).pid_namespace;
    let machine = "0123456789abcdef0123456789abcdef";
    let inode = Some(PidNamespace(4_026_531_836));
    assert_eq!(
        namespace(&format!("linux:{machine}:pid:[4026531836]")),
        inode
    );
    assert_eq!(namespace("linux::pid:[4026531836]"), inode);
    for other in [
        "",
        "darwin:0123",
        "linux:x",
        "linux:x:pid:[]",
        "linux:x:pid:[0]",
        "linux:x:pid:[-1]",
        "linux:x:pid:[4026531836",
        "win32:x:pid:[4026531836]",
    ] {
        assert_eq!(namespace(other), None, "{other}");
    }
    assert_eq!(record("").pid_namespace, None);
}

#[test]
fn only_a_record_that_says_so_is_a_spare_s() {
    assert!(record(r#","kind":"bg","spare":true"#).is_spare);
    assert!(!record(r#","kind":"bg","spare":false"#).is_spare);
    assert!(!record(r#","kind":"bg""#).is_spare);
}

#[track_caller]
fn check_published(
    fields: &str,
    phase: Option<Phase>,
    waiting_for: Option<WaitingFor>,
    word: &str,
) {
    let published = record(fields).published.unwrap();
    assert_eq!(published.phase, phase, "{fields}");
    assert_eq!(published.waiting_for, waiting_for, "{fields}");
    assert_eq!(published.word.as_deref(), Some(word));
}

#[test]
fn what_it_publishes_maps_to_a_phase_or_stays_a_word() {
    check_published(r#","status":"idle""#, Some(Phase::Idle), None, "idle");
    check_published(r#","status":"busy""#, Some(Phase::Working), None, "busy");
    check_published(r#","status":"shell""#, Some(Phase::Idle), None, "shell");
    check_published(r#","status":"pondering""#, None, None, "pondering");
    let waiting = |what: &str| format!(r#","status":"waiting","waitingFor":"{what}""#);
    let is = Some(Phase::Waiting);
    let permission = Some(WaitingFor::Permission);
    check_published(
        &waiting("permission prompt"),
        is,
        permission,
        "waiting: permission prompt",
    );
    check_published(
        &waiting("sandbox request"),
        is,
        permission,
        "waiting: sandbox request",
    );
    check_published(
        &waiting("worker request"),
        is,
        permission,
        "waiting: worker request",
    );
    check_published(
        &waiting("input needed"),
        is,
        Some(WaitingFor::Question),
        "waiting: input needed",
    );
    check_published(
        &waiting("goal proposal"),
        is,
        permission,
        "waiting: goal proposal",
    );
    check_published(&waiting("dialog open"), is, None, "waiting: dialog open");
    check_published(&waiting("full moon"), is, None, "waiting: full moon");
    check_published(r#","status":"waiting""#, is, None, "waiting");
    check_published(
        r#","status":"idle","waitingFor":"dialog open""#,
        Some(Phase::Idle),
        None,
        "idle",
    );
    assert_eq!(record("").published, None);
}

#[test]
fn a_claim_is_dated_by_the_newest_of_its_dates() {
    let dates = r#","startedAt":5,"updatedAt":7,"statusUpdatedAt":6"#;
    assert_eq!(record(dates).dated_at_ms, Some(7));
    assert_eq!(record(r#","startedAt":5"#).dated_at_ms, Some(5));
    assert_eq!(record("").dated_at_ms, None);
    let odd = record(r#","startedAt":5,"updatedAt":"later""#);
    assert_eq!(odd.dated_at_ms, Some(5));
    assert_eq!(
        odd.odd_fields[0].to_string(),
        "`updatedAt` is not an integer: found the string `later`"
    );
}

#[test]
fn a_name_made_of_the_directory_or_the_prompt_is_no_title() {
    assert_eq!(
        record(r#","name":"mysess""#).name.as_deref(),
        Some("mysess")
    );
    assert_eq!(
        record(r#","name":"app-9a","nameSource":"derived""#).name,
        None
    );
    assert_eq!(record(r#","name":"fix it all","kind":"bg""#).name, None);
    let source = |source: &str| record(&format!(r#","name":"x","nameSource":"{source}""#)).name;
    assert_eq!(source("user").as_deref(), Some("x"));
    assert_eq!(source("collision").as_deref(), Some("x"));
    assert_eq!(source("auto"), None);
    assert_eq!(record(r#","name":" ""#).name, None);
}

#[test]
fn the_entrypoint_shows_who_sits_before_it() {
    assert_eq!(record(r#","entrypoint":"cli""#).is_headless(), Some(false));
    assert_eq!(
        record(r#","entrypoint":"sdk-cli""#).is_headless(),
        Some(true)
    );
    assert_eq!(
        record(r#","entrypoint":"sdk-ts""#).is_headless(),
        Some(true)
    );
    assert_eq!(
        record(r#","entrypoint":"claude-vscode""#).is_headless(),
        None
    );
    assert_eq!(record("").is_headless(), None);
}

#[test]
fn only_an_interactive_record_without_a_status_is_not_settled() {
    assert!(record(r#","kind":"interactive","entrypoint":"cli""#).is_silent_terminal());
    assert!(!record(r#","kind":"interactive","entrypoint":"sdk-cli""#).is_silent_terminal());
    assert!(
        !record(r#","kind":"interactive","entrypoint":"cli","status":"idle""#).is_silent_terminal()
    );
    assert!(!record(r#","kind":"bg","entrypoint":"cli""#).is_silent_terminal());
}

#[track_caller]
fn check_error(bytes: &[u8], text: &str, may_be_torn: bool) {
    let error = parse_record(bytes).unwrap_err();
    assert_eq!(error.to_string(), text);
    assert_eq!(error.may_be_torn(), may_be_torn);
}

#[test]
fn a_record_without_pid_or_session_makes_no_claim_and_says_why() {
    check_error(b"", "it is empty", true);
    check_error(b"[]", "it is not a JSON object but an array", false);
    check_error(b"{}", "`pid` is missing", false);
    check_error(
        br#"{"pid":"7"}"#,
        "`pid` is not an integer: found the string `7`",
        false,
    );
    check_error(
        br#"{"pid":7.0}"#,
        "`pid` is not an integer: found the number `7.0`",
        false,
    );
    check_error(
        br#"{"pid":true}"#,
        "`pid` is not an integer: found the bool `true`",
        false,
    );
    let range = "`pid` is not a process id (1 to 2147483647): found `0`";
    check_error(br#"{"pid":0}"#, range, false);
    check_error(br#"{"pid":7}"#, "`sessionId` is missing", false);
    assert!(parse_record(br#"{"pid":7,"sessionId":"../../x"}"#).is_err());
    assert!(parse_record(br#"{"pid":7,"sessionId":""}"#).is_err());
}

#[test]
fn every_cut_of_a_record_may_be_whole_a_moment_later() {
    let whole = format!(r#"{{"pid":24420,"sessionId":"{ID}","status":"idle"}}"#);
    for len in 0..whole.len() {
        let error = parse_record(&whole.as_bytes()[..len]).unwrap_err();
        assert!(error.may_be_torn(), "{len}");
    }
}

#[test]
fn tokens_of_a_record_are_not_kept() {
    let record = record(
        r#","bridgeSessionId":"SECRET-1","ipcToken":"SECRET-2","messagingSocketPath":"/run/s""#,
    );
    assert!(!format!("{record:?}").contains("SECRET"));
    assert_eq!(record.endpoint.as_deref(), Some("/run/s"));
}

proptest::proptest! {
    #[test]
    fn no_bytes_make_the_parser_fail_otherwise_than_by_an_error(bytes: Vec<u8>, text: String) {
        let _ = parse_record(&bytes);
        let _ = parse(&format!(r#","procStart":{text:?},"status":{text:?}"#));
    }
}
