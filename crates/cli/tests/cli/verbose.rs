//! `--verbose`: the steps of a scan, on standard error.

use super::world::World;

#[test]
fn it_names_homes_numbers_and_times_and_no_text_of_a_session() {
    let world = World::new();
    let posing = world.pose_as_claude();
    world.write_claude_record(posing.pid(), &posing.start(), &world.s1);
    world.write_claude_transcript(".claude", &world.s1);
    let quiet = world.run(["list", "--json"]);
    assert_eq!(quiet.err, "");
    let title = quiet.sessions()[0]["title"].as_str().unwrap().to_owned();
    let said = world.run(["list", "--json", "--verbose"]);
    assert_eq!(said.status, 0, "{}", said.err);
    assert_eq!(said.sessions().len(), quiet.sessions().len());
    for words in [
        "process table: ",
        "configuration: ",
        "agent processes: ",
        "home claude-code ~/.claude: 1 sessions, 1 claims, ",
        "session records: 0 sessions, 0 claims, ",
        "done in ",
    ] {
        let line = said.err.lines().find(|line| line.contains(words));
        let line = line.unwrap_or_else(|| panic!("{words}: {}", said.err));
        assert!(line.ends_with(" ms"), "{line}");
    }
    assert!(!said.err.contains(&title), "{}", said.err);
    assert!(!said.err.contains('\u{1b}'), "{}", said.err);
    // Before the command too.
    assert!(world.run(["-v", "list"]).err.contains("done in "));
    assert!(world.run(["-v"]).err.contains("done in "));
}
