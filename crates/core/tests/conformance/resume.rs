//! Whatever a session is called, the command that continues it has one option, and
//! the id is what that option is given.

use proptest::prelude::*;

use super::*;

/// The names of options begin so.
const HYPHEN: char = '-';

/// What an id may be made of, hyphens above all.
fn any_id() -> impl Strategy<Value = String> {
    prop_oneof![
        "-{0,3}[a-z0-9=_ .é-]{0,20}",
        "--[a-z-]{1,30}=?[a-z]{0,5}",
        any::<String>(),
    ]
}

/// The command with which an agent continues a session, in its default home and in
/// another one, which may have any name.
fn commands(adapter: &dyn Adapter, session: &SessionId, root: &Path) -> Vec<Vec<String>> {
    let mut sketch = Sketch::new(SessionKey {
        agent: id_of(adapter),
        session: session.clone(),
        home: root.into(),
    });
    sketch.work_dir = Some(root.join("-work"));
    sketch.transcript = Some(root.join("-data/-file"));
    let of = |is_default| adapter.resume(&sketch, is_default);
    let commands = [of(true), of(false)].into_iter().flatten();
    commands.map(|command| command.argv).collect()
}

#[track_caller]
fn check_command(adapter: &dyn Adapter, argv: &[String], plain: &[String], session: &SessionId) {
    let agent = adapter.profile().id;
    let said = |id: &str| argv.iter().filter(|word| word.contains(id)).count();
    assert!(said(session.as_str()) > 0, "{agent}: {argv:?}");
    assert_eq!(argv.len(), plain.len(), "{agent}: {argv:?}");
    for (word, plain) in argv.iter().zip(plain) {
        // An option is an option of every session.
        let is_option = |word: &str| word.starts_with(HYPHEN);
        assert_eq!(is_option(word), is_option(plain), "{agent}: {argv:?}");
        if is_option(word) {
            let name = |word: &str| word.split('=').next().unwrap_or_default().to_owned();
            assert_eq!(name(word), name(plain), "{agent}: {argv:?}");
        }
    }
}

proptest! {
    #[test]
    fn no_id_of_a_session_becomes_an_option(id in any_id()) {
        let Ok(session) = SessionId::parse(&id) else {
            return Ok(());
        };
        let plain = SessionId::parse("plain").unwrap();
        for adapter in AGENTS {
            let root = Path::new("/home/dev/-home");
            let of_plain = commands(*adapter, &plain, root);
            let commands = commands(*adapter, &session, root);
            assert!(!commands.is_empty(), "{}", adapter.profile().id);
            for (argv, plain) in commands.iter().zip(&of_plain) {
                check_command(*adapter, argv, plain, &session);
            }
        }
    }
}

#[test]
fn an_id_that_could_be_an_option_is_no_id() {
    for option in ["-", "--yolo", "--dangerously-skip-permissions", "-c", "--"] {
        assert!(SessionId::parse(option).is_err(), "{option}");
    }
}

#[test]
fn no_path_becomes_an_option() {
    let session = SessionId::parse("plain").unwrap();
    for adapter in AGENTS {
        // Of a home that was named by a relative path.
        for argv in commands(*adapter, &session, Path::new("-home")) {
            let agent = adapter.profile().id;
            let has_path = argv.iter().any(|word| word.starts_with("-home"));
            assert!(!has_path, "{agent}: {argv:?}");
        }
    }
}
