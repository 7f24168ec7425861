use std::fs;

use super::*;

const ID: &str = "0a022b20-e8f2-410e-9552-8385582a8e8b";

fn session() -> SessionId {
    SessionId::parse(ID).unwrap()
}

fn write_transcript(home: &Path, folder: &str, cwd: &Path) -> PathBuf {
    let path = home
        .join("projects")
        .join(folder)
        .join(format!("{ID}.jsonl"));
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let line = serde_json::json!({"type": "user", "sessionId": ID, "cwd": cwd});
    fs::write(&path, format!("{line}\n")).unwrap();
    path
}

#[test]
fn a_directory_is_encoded_as_the_agent_does() {
    let of = |text: &str| hyphenated(Path::new(text));
    assert_eq!(
        of("/home/dev/proj-claude/sub dir_x.y"),
        "-home-dev-proj-claude-sub-dir-x-y"
    );
    assert_eq!(of("/w/\u{e9}"), "-w--");
    assert_eq!(of("/w/e\u{301}"), "-w-e-");
    assert_eq!(of("/w/\u{1F600}"), "-w---");
}

#[test]
fn the_folder_of_a_long_directory_is_found_by_its_beginning() {
    let directory = PathBuf::from(format!("/{}", "long/".repeat(52)));
    let cut: String = hyphenated(&directory).chars().take(200).collect();
    assert!(is_folder_of(
        Path::new(&format!("/p/{cut}-1a2b3c")),
        &directory
    ));
    assert!(!is_folder_of(Path::new(&format!("/p/{cut}")), &directory));
    assert!(!is_folder_of(Path::new("/p/-long"), &directory));
    assert!(is_folder_of(Path::new("/p/-w-app"), Path::new("/w/app")));
    assert!(!is_folder_of(Path::new("/p/-w-app-2"), Path::new("/w/app")));
}

#[test]
fn a_transcript_is_found_wherever_it_is() {
    let home = tempfile::tempdir().unwrap();
    let find = |cwd: Option<&str>| {
        Projects::new(home.path())
            .find(&session(), cwd.map(Path::new))
            .found
    };
    assert_eq!(find(None), None);
    let elsewhere = write_transcript(home.path(), "-w-old-place", Path::new("/w/old"));
    assert_eq!(find(Some("/w/app")), Some(elsewhere.clone()));
    assert_eq!(find(None), Some(elsewhere));
    let suggested = write_transcript(home.path(), "-w-app", Path::new("/w/app"));
    assert_eq!(find(Some("/w/app")), Some(suggested));
}

#[test]
fn of_two_transcripts_of_a_session_the_one_written_last_is_found() {
    let home = tempfile::tempdir().unwrap();
    let first = write_transcript(home.path(), "-a", Path::new("/a"));
    let second = write_transcript(home.path(), "-b", Path::new("/b"));
    let long_ago = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000);
    for (older, newer) in [(&first, &second), (&second, &first)] {
        let set = |path: &Path, at| fs::File::open(path).unwrap().set_modified(at).unwrap();
        set(older, long_ago);
        set(newer, long_ago + std::time::Duration::from_secs(60));
        let found = Projects::new(home.path()).find(&session(), None).found;
        assert_eq!(found.as_ref(), Some(newer));
    }
}

#[test]
fn a_folder_behind_a_link_is_found_by_what_its_transcripts_say() {
    let world = tempfile::tempdir().unwrap();
    let real = world.path().join("real");
    let link = world.path().join("link");
    fs::create_dir(&real).unwrap();
    std::os::unix::fs::symlink(&real, &link).unwrap();
    let home = world.path().join("home");
    let transcript = write_transcript(&home, "-some-link", &link);
    write_transcript(&home, "-w-other", Path::new("/w/other"));
    let folders = Projects::new(&home)
        .of_directory(&real, &Mounts::of_this_machine())
        .found;
    assert_eq!(folders, [transcript.parent().unwrap()]);
}

#[test]
fn only_sessions_and_sub_agents_of_a_folder_are_listed() {
    let home = tempfile::tempdir().unwrap();
    let transcript = write_transcript(home.path(), "-w", Path::new("/w"));
    let folder = transcript.parent().unwrap();
    for name in [
        "agent-ab12cd34.jsonl",
        "notes.jsonl",
        "sessions-index.json",
        "x",
    ] {
        fs::write(folder.join(name), "").unwrap();
    }
    fs::create_dir(folder.join(ID)).unwrap();
    fs::create_dir(folder.join("memory")).unwrap();
    let listed = list(folder).found;
    assert_eq!(listed.sessions, [session()]);
    assert!(listed.has_folder_of(&session()));
    assert_eq!(listed.sub_agents, [folder.join("agent-ab12cd34.jsonl")]);
    assert!(list(&transcript).problems.is_empty());
}
