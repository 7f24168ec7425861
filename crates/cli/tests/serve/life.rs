//! How a server begins and ends, and how it is found.

use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use crate::client::{Server, in_home, whosup};
use crate::world::{WHOSUP, World, said, wait_for};

fn run(world: &World, arguments: &[&str]) -> crate::world::Said {
    let mut command = world.whosup();
    said(command.arg("serve").args(arguments))
}

#[test]
fn a_second_start_finds_the_first_and_a_killed_server_is_not_running() {
    let world = World::new();
    assert_eq!(run(&world, &["--status"]).status, 4);
    let first = Server::start(&world);
    let url = format!("http://{}/#token={}\n", first.address, first.token);

    let second = run(&world, &["--listen", "127.0.0.1:0"]);
    assert_eq!(
        (second.status, second.out.as_str()),
        (2, url.as_str()),
        "{}",
        second.err
    );
    assert!(
        second.err.contains(&first.pid().to_string()),
        "{}",
        second.err
    );
    let status = run(&world, &["--status"]);
    assert_eq!((status.status, status.out.as_str()), (0, url.as_str()));

    let token = first.token.clone();
    first.kill();
    let status = run(&world, &["--status"]);
    assert_eq!(status.status, 1, "{}{}", status.out, status.err);
    assert!(status.err.contains("exited"), "{}", status.err);

    let again = Server::start(&world);
    assert_eq!(again.token, token, "the token survives");
    assert_eq!(again.get("/healthz").body, "ok\n");
    assert_eq!(again.terminate(), 0);
    assert_eq!(
        run(&world, &["--status"]).status,
        4,
        "it took its announcement back"
    );
}

#[test]
fn a_new_token_counts_at_once() {
    let world = World::new();
    let server = Server::start(&world);
    let replaced = run(&world, &["--new-token"]);
    assert_eq!(replaced.status, 0, "{}", replaced.err);
    let (endpoint, token) = replaced.out.trim_end().split_once("/#token=").unwrap();
    assert_eq!(endpoint, format!("http://{}", server.address));
    assert_ne!(token, server.token);
    assert_eq!(server.get("/api/v1/state").status, 401);
    let authorization = format!("Bearer {token}");
    let reply = server.get_with("/api/v1/state", &[("Authorization", &authorization)]);
    assert_eq!(reply.status, 200);
}

#[test]
fn the_token_is_for_the_user_alone_and_a_file_that_others_may_read_is_refused() {
    let world = World::new();
    let server = Server::start(&world);
    let path = world.home().join(".local/state/whosup/server/token");
    let meta = std::fs::metadata(&path).unwrap();
    assert_eq!(meta.permissions().mode() & 0o777, 0o600);
    let directory = std::fs::metadata(path.parent().unwrap()).unwrap();
    assert_eq!(directory.permissions().mode() & 0o777, 0o700);
    assert_eq!(server.terminate(), 0);

    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
    let refused = run(&world, &["--listen", "127.0.0.1:0"]);
    assert_eq!(refused.status, 2);
    assert!(refused.err.contains("--new-token"), "{}", refused.err);
}

#[test]
fn other_hosts_need_tls_or_an_explicit_word() {
    let world = World::new();
    let refused = run(&world, &["--listen", "0.0.0.0:0"]);
    assert_eq!(refused.status, 2);
    assert!(refused.err.contains("--tls-cert"), "{}", refused.err);
    let server = Server::start_with(&world, &["--listen", "0.0.0.0:0", "--insecure"]);
    let port = server.address.rsplit_once(':').unwrap().1;
    let host = format!("127.0.0.1:{port}");
    assert_eq!(
        server.get_with("/api/v1/state", &[("Host", &host)]).status,
        200
    );
}

#[test]
fn no_argument_list_shows_the_token() {
    let world = World::new();
    // What opens pages here writes down what it was given.
    let opened = world.root().join("opened");
    let opener = world.root().join("bin/xdg-open");
    std::fs::create_dir_all(opener.parent().unwrap()).unwrap();
    let script = format!(
        "#!/bin/sh\necho \"$@\" > {0}.new; mv {0}.new {0}\n",
        opened.display()
    );
    std::fs::write(&opener, script).unwrap();
    std::fs::set_permissions(&opener, std::fs::Permissions::from_mode(0o755)).unwrap();
    let server = Server::start(&world);
    let path = format!("{}:/usr/bin:/bin", opener.parent().unwrap().display());
    let status = whosup(&world)
        .env("PATH", path)
        .args(["serve", "--open"])
        .status()
        .unwrap();
    assert!(status.success());
    let arguments = wait_for("the page to be opened", || {
        std::fs::read_to_string(&opened).ok()
    });
    assert!(!arguments.contains(&server.token), "{arguments}");
    let page = std::path::Path::new(arguments.trim_end());
    assert!(
        std::fs::read_to_string(page)
            .unwrap()
            .contains(&server.token)
    );
    assert_eq!(
        std::fs::metadata(page).unwrap().permissions().mode() & 0o777,
        0o600
    );
}

#[test]
fn a_server_serves_where_no_browser_can_be_opened() {
    let world = World::new();
    let mut command = Command::new("/usr/bin/env");
    command.arg("PATH=/nonexistent").arg(WHOSUP);
    let arguments = ["--listen", "127.0.0.1:0", "--open"];
    let (server, _stdin) = Server::start_by(&world, command, &arguments);
    assert_eq!(server.get("/api/v1/state").status, 200);
}

#[test]
fn a_server_that_is_started_by_tls_files_speaks_tls() {
    let world = World::new();
    let (certificate, key) = (world.root().join("cert.pem"), world.root().join("key.pem"));
    let made = std::process::Command::new("openssl")
        .args([
            "req",
            "-x509",
            "-newkey",
            "rsa:2048",
            "-nodes",
            "-days",
            "2",
            "-subj",
            "/CN=localhost",
        ])
        .args([
            "-addext",
            "subjectAltName=DNS:localhost,IP:127.0.0.1",
            "-keyout",
        ])
        .arg(&key)
        .arg("-out")
        .arg(&certificate)
        .output();
    let has_curl = std::process::Command::new("curl")
        .arg("--version")
        .output()
        .is_ok();
    if !made.is_ok_and(|made| made.status.success()) || !has_curl {
        eprintln!("skipped: there is no openssl or no curl here");
        return;
    }
    let (shown, key) = (certificate.to_str().unwrap(), key.to_str().unwrap());
    let server = Server::start_with(
        &world,
        &[
            "--listen",
            "127.0.0.1:0",
            "--tls-cert",
            shown,
            "--tls-key",
            key,
        ],
    );
    let output = std::process::Command::new("curl")
        .args(["--silent", "--show-error", "--cacert", shown, "--header"])
        .arg(format!("Authorization: Bearer {}", server.token))
        .arg(format!("https://{}/api/v1/state", server.address))
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        text.contains("\"sessions\""),
        "{text}{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn a_server_that_gets_too_few_descriptors_ends_with_an_error_and_is_not_announced() {
    let world = World::new();
    let mut command = Command::new("sh");
    in_home(&mut command, &world);
    command.args(["-c", "ulimit -n 13 && exec \"$0\" \"$@\"", WHOSUP]);
    let refused = command.args(["serve", "--listen", "127.0.0.1:0"]);
    let refused = refused.output().unwrap();
    let err = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(2), "{err}");
    assert!(err.contains("oo many open files"), "{err}");
    assert_eq!(run(&world, &["--status"]).status, 4, "it is announced");
}

#[test]
fn an_announcement_that_cannot_be_read_may_be_that_of_a_running_server() {
    let world = World::new();
    let server = Server::start(&world);
    let path = world
        .home()
        .join(".local/state/whosup/server/server.runtime.json");
    let good = std::fs::read_to_string(&path).unwrap();
    let mut newer: serde_json::Value = serde_json::from_str(&good).unwrap();
    newer["schema_version"] = 2.into();
    for (text, reason) in [(&good[..20], ""), (&newer.to_string(), "only `1`")] {
        std::fs::write(&path, text).unwrap();
        let status = run(&world, &["--status"]);
        assert_eq!(status.status, 3, "{}", status.err);
        let named = path.display().to_string();
        assert!(
            status.err.contains(&named) && status.err.contains(reason),
            "{}",
            status.err
        );
        // The port is taken, so that this one ends.
        let second = run(&world, &["--listen", &server.address]);
        assert_eq!(second.status, 2);
        assert!(
            second.err.contains("another server may be running"),
            "{}",
            second.err
        );
    }
    std::fs::write(&path, &good).unwrap();
    assert_eq!(run(&world, &["--status"]).status, 0);
}

#[test]
fn a_socket_is_refused_in_a_directory_for_everybody() {
    let world = World::new();
    let shared = world.root().join("shared");
    std::fs::create_dir(&shared).unwrap();
    std::fs::set_permissions(&shared, std::fs::Permissions::from_mode(0o1777)).unwrap();
    let socket = shared.join("x.sock");
    let refused = run(&world, &["--socket", socket.to_str().unwrap()]);
    assert_eq!(refused.status, 2);
    let is_advice = refused.err.contains("a directory of your own");
    assert!(
        is_advice && !refused.err.contains("chmod"),
        "{}",
        refused.err
    );
}
