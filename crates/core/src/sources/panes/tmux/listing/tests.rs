use super::*;

fn row(line: &str) -> Row {
    parse_row(line.as_bytes()).unwrap()
}

#[track_caller]
fn check_text(line: &[u8], session: &str, title: &str) {
    let row = parse_row(line).unwrap();
    assert_eq!((row.session.as_str(), row.title.as_str()), (session, title));
    assert_eq!((row.pane.as_str(), row.pid), ("%3", Pid::new(4711).ok()));
}

#[track_caller]
fn check_bad(line: &str, reason: &str) {
    assert_eq!(parse_row(line.as_bytes()), Err(reason.to_owned()), "{line}");
}

#[test]
fn no_title_moves_the_fields_before_it() {
    check_text(b"%3 4711 0 900 /dev/pts/2 0 4 3 main:api:", "main", "");
    check_text(b"%3 4711 0 900 /dev/pts/2 0 4 3 main:api: ", "main", " ");
    check_text(
        b"%3 4711 0 900 /dev/pts/2 0 4 3 main:api:a\tb|c:d %9 1 0",
        "main",
        "a\tb|c:d %9 1 0",
    );
    check_text(
        b"%3 4711 0 900 /dev/pts/2 0 4 3 main:api:a\rb",
        "main",
        "a\rb",
    );
    check_text(
        b"%3 4711 0 900 /dev/pts/2 0 4 3 main:api:caf\xe9",
        "main",
        "caf\u{fffd}",
    );
}

#[test]
fn the_name_of_a_tmux_session_may_hold_spaces_and_colons() {
    check_text(
        b"%3 4711 0 900 /dev/pts/2 0 7 3 my main:api:x:y",
        "my main",
        "x:y",
    );
    check_text(
        b"%3 4711 0 900 /dev/pts/2 0 5 3 a:b:c:api:x:y",
        "a:b:c",
        "x:y",
    );
    check_text(
        "%3 4711 0 900 /dev/pts/2 0 3 3 é!:api:x".as_bytes(),
        "é!",
        "x",
    );
}

#[test]
fn a_window_has_a_name_and_a_pane_a_place_in_it() {
    let row = row("%3 4711 0 900 /dev/pts/2 2 4 8 main:my: work:x");
    let found = (row.window.as_str(), row.index.as_str(), row.title.as_str());
    assert_eq!(found, ("my: work", "2", "x"));
}

#[test]
fn clients_are_listed_behind_panes() {
    let listing = parse_listing(b"%0 10 0 900 /dev/pts/2 0 1 3 a:api:x\nclient 77 my main\n");
    let pid = Pid::new(77).unwrap();
    assert_eq!(listing.clients, [(pid, "my main".to_owned())]);
    assert_eq!((listing.panes.len(), listing.bad.len()), (1, 0));
}

#[test]
fn a_version_without_lengths_is_split_at_the_first_colon() {
    check_text(
        b"%3 4711 0 900 /dev/pts/2 0   my main:api:x:y",
        "my main",
        "x:y",
    );
    check_text(
        b"%3 4711 0 900 /dev/pts/2 0 99 3 main:api:x:y",
        "main",
        "x:y",
    );
}

#[test]
fn a_pane_that_nothing_was_started_in_has_neither_process_nor_terminal() {
    let empty = row("%3 0 1 900  0 4 3 main:api:x");
    assert_eq!(
        (empty.pid, empty.tty_path, empty.is_dead),
        (None, None, true)
    );
}

#[test]
fn a_line_that_is_no_pane_says_why() {
    check_bad("", "1 of 9 fields");
    check_bad("%3 4711 0 900 /dev/pts/2 0 4", "7 of 9 fields");
    check_bad(
        "3 4711 0 900 /dev/pts/2 0 4 3 main:api:x",
        "`pane_id` is not a pane id",
    );
    check_bad(
        "% 4711 0 900 /dev/pts/2 0 4 3 main:api:x",
        "`pane_id` is not a pane id",
    );
    check_bad(
        "%3 x 0 900 /dev/pts/2 0 4 3 main:api:x",
        "`pane_pid` is not an integer",
    );
    check_bad(
        "%3 4711 2 900 /dev/pts/2 0 4 3 main:api:x",
        "`pane_dead` is not 0 or 1",
    );
    check_bad(
        "%3 4711 0  /dev/pts/2 0 4 3 main:api:x",
        "`pid` is not a process id",
    );
    check_bad(
        "%3 4711 0 900 /dev/pts/2 0 4 3 main:api",
        "no `:` behind the name of the window",
    );
    check_bad(
        "%3 4711 0 900 /dev/pts/2 0 4 3 main",
        "no `:` behind the name of the tmux session",
    );
}

#[test]
fn good_lines_are_kept_beside_torn_ones() {
    let output =
        b"%0 10 0 900 /dev/pts/2 0 1 3 a:api:x\nrest of a name\n%1 11 0 900 /dev/pts/3 0 1 3 a:api:y\n%2 12 0";
    let listing = parse_listing(output);
    let kept: Vec<_> = listing.panes.iter().map(|row| row.pane.as_str()).collect();
    let bad: Vec<_> = listing.bad.iter().map(|line| line.number).collect();
    assert_eq!((kept, bad), (vec!["%0", "%1"], vec![2, 4]));
}

#[test]
fn a_window_in_two_tmux_sessions_is_one_pane() {
    let listing = parse_listing(
        b"%0 10 0 900 /dev/pts/2 0 1 3 a:api:x\n%0 10 0 900 /dev/pts/2 0 1 3 b:api:x\n",
    );
    let pane = Row {
        also_in: vec!["b".to_owned()],
        ..row("%0 10 0 900 /dev/pts/2 0 1 3 a:api:x")
    };
    assert_eq!(listing.panes, [pane]);
    assert_eq!(listing.bad, []);
}

#[test]
fn a_line_that_contradicts_the_ones_before_it_is_not_believed() {
    let output = b"%0 10 0 900 /dev/pts/2 0 1 3 a:api:x\n%0 11 0 900 /dev/pts/2 0 1 3 a:api:x\n%1 12 0 901 /dev/pts/3 0 1 3 a:api:x\n";
    let listing = parse_listing(output);
    assert_eq!(listing.panes.len(), 1);
    let bad: Vec<_> = listing.bad.iter().map(|line| line.number).collect();
    assert_eq!(bad, [2, 3]);
}

#[test]
fn nothing_printed_is_no_pane_and_nothing_bad() {
    assert_eq!(parse_listing(b""), Listing::default());
    assert_eq!(parse_listing(b"\n"), Listing::default());
}

#[test]
fn panes_are_counted_up_to_a_bound() {
    let lines = (0..=PANES_MAX).map(|id| format!("%{id} 10 0 900 /dev/pts/2 0 1 3 a:api:x\n"));
    let listing = parse_listing(lines.collect::<String>().as_bytes());
    assert_eq!((listing.panes.len(), listing.bad.len()), (PANES_MAX, 1));
}
