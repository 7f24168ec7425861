//! `service`: the file that it writes, and what it leaves alone.

use std::path::PathBuf;
use std::process::Command;

use super::world::{WHOSUP, World};

fn unit(world: &World, service: &str) -> PathBuf {
    let name = format!(".config/systemd/user/whosup-{service}.service");
    world.home().join(name)
}

#[test]
fn a_service_is_written_found_written_anew_and_removed() {
    let world = World::new();
    let path = unit(&world, "serve");
    let status = || world.run(["service", "status"]).out;
    assert_eq!(status(), "serve   not installed\nnotify  not installed\n");
    let installed = world.run(["service", "install", "serve"]);
    assert_eq!(installed.status, 0, "{}", installed.err);
    let start =
        "systemctl --user daemon-reload\nsystemctl --user enable --now whosup-serve.service\n";
    assert_eq!(installed.out, start);
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(
        text.contains(&format!("ExecStart=\"{WHOSUP}\" \"serve\"\n")),
        "{text}"
    );
    assert!(status().starts_with("serve   installed: ~/.config/systemd/user/"));
    let again = world.run(["service", "install", "serve"]);
    assert!(again.err.contains("up to date"), "{}", again.err);

    std::fs::write(&path, text.replace(WHOSUP, "/opt/old/whosup")).unwrap();
    assert!(
        status().starts_with("serve   out of date: "),
        "{}",
        status()
    );
    let renewed = world.run(["service", "install", "serve"]);
    assert!(renewed.out.contains("try-restart"), "{}", renewed.out);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), text);

    let removed = world.run(["service", "uninstall", "serve"]);
    assert_eq!(removed.status, 0, "{}", removed.err);
    assert!(!path.exists());
    let again = world.run(["service", "uninstall", "serve"]);
    assert_eq!(again.status, 0, "{}", again.err);
    assert!(again.err.contains("is not there"), "{}", again.err);
}

#[test]
fn what_a_person_put_there_stays() {
    let world = World::new();
    let path = unit(&world, "notify");
    let own = "[Service]\nExecStart=/bin/true\n";
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, own).unwrap();
    for action in ["install", "uninstall"] {
        let said = world.run(["service", action, "notify"]);
        assert_eq!(said.status, 2, "{action}");
        assert!(said.err.contains("whosup-notify.service"), "{}", said.err);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), own, "{action}");
    }
    assert!(
        world
            .run(["service", "status"])
            .out
            .contains("another file")
    );

    // A link is not followed, even if it leads to a file of ours.
    std::fs::remove_file(&path).unwrap();
    world.run(["service", "install", "notify"]);
    let moved = world.home().join("moved");
    std::fs::rename(&path, &moved).unwrap();
    std::os::unix::fs::symlink(&moved, &path).unwrap();
    let before = std::fs::read(&moved).unwrap();
    for action in ["install", "uninstall"] {
        assert_eq!(world.run(["service", action, "notify"]).status, 2);
        assert!(path.is_symlink(), "{action}");
        assert_eq!(std::fs::read(&moved).unwrap(), before, "{action}");
    }
}

#[test]
fn systemd_understands_the_units() {
    let world = World::new();
    for service in ["serve", "notify"] {
        let config = world.write("a \"b\" 50% $HOME/config.toml", "");
        let config = config.to_str().unwrap();
        let said = world.run(["service", "install", service, "--config", config]);
        assert_eq!(said.status, 0, "{}", said.err);
        let mut verify = Command::new("systemd-analyze");
        verify.args(["verify", "--user"]).arg(unit(&world, service));
        match verify.env("XDG_RUNTIME_DIR", world.root()).output() {
            Err(error) => eprintln!("skipped: no `systemd-analyze`: {error}"),
            Ok(output) => {
                let said = String::from_utf8_lossy(&output.stderr);
                assert!(output.status.success() && said.is_empty(), "{said}");
            }
        }
    }
}
