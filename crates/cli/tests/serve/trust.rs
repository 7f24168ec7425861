//! Who gets an answer, and who gets none.

use std::io::{Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::process::Command;
use std::time::Duration;

use crate::client::{Server, read_reply};
use crate::world::World;

#[track_caller]
fn check_refused(server: &Server, path: &str, headers: &[(&str, &str)], status: u16) {
    let reply = server.get_with(path, headers);
    assert_eq!(reply.status, status, "{headers:?}: {}", reply.body);
    assert!(!reply.body.contains("\"sessions\""), "{}", reply.body);
    assert!(!reply.code().is_empty());
}

#[test]
fn who_has_no_token_gets_no_answer() {
    let world = World::new();
    let server = Server::start(&world);
    let wrong = format!("Bearer {}", "0".repeat(64));
    let basic = format!("Basic {}", server.token);
    let twice = format!("Bearer {0} {0}", server.token);
    for authorization in [
        "",
        "Bearer",
        "Bearer ",
        wrong.as_str(),
        basic.as_str(),
        twice.as_str(),
    ] {
        for path in [
            "/api/v1/state",
            "/api/v1/events",
            "/metrics",
            "/api/v1/openapi.json",
            "/api/v1/nothing",
        ] {
            check_refused(&server, path, &[("Authorization", authorization)], 401);
        }
    }
    // A token in the address would be in logs and histories.
    let path = format!("/api/v1/state?token={}", server.token);
    check_refused(&server, &path, &[("Authorization", "")], 401);
}

#[test]
fn a_name_that_others_have_the_say_over_gets_no_answer() {
    let world = World::new();
    let server = Server::start(&world);
    let port = server.address.rsplit_once(':').unwrap().1;
    let rebound = format!("evil.example:{port}");
    let tail = format!("127.0.0.1.evil.example:{port}");
    for host in [rebound.as_str(), tail.as_str(), "", "10.0.0.1"] {
        for path in ["/", "/healthz", "/api/v1/state"] {
            check_refused(&server, path, &[("Host", host)], 403);
        }
    }
    let local = format!("localhost:{port}");
    assert_eq!(
        server.get_with("/api/v1/state", &[("Host", &local)]).status,
        200
    );
}

#[test]
fn pages_of_other_origins_get_no_answer_and_no_permission() {
    let world = World::new();
    let server = Server::start(&world);
    for origin in [
        "http://evil.example",
        "null",
        "http://127.0.0.1:1",
        "https://127.0.0.1",
    ] {
        check_refused(&server, "/api/v1/state", &[("Origin", origin)], 403);
        check_refused(&server, "/healthz", &[("Origin", origin)], 403);
        let preflight =
            server.send(&server.request("OPTIONS", "/api/v1/state", &[("Origin", origin)], ""));
        assert_eq!(preflight.status, 403);
        assert!(
            !preflight
                .headers
                .keys()
                .any(|name| name.starts_with("access-control"))
        );
    }
    check_refused(
        &server,
        "/api/v1/state",
        &[("Sec-Fetch-Site", "cross-site")],
        403,
    );
    let own = format!("http://{}", server.address);
    let reply = server.get_with(
        "/api/v1/state",
        &[("Origin", &own), ("Sec-Fetch-Site", "same-origin")],
    );
    assert_eq!(reply.status, 200);
    assert!(
        !reply
            .headers
            .keys()
            .any(|name| name.starts_with("access-control"))
    );
}

#[test]
fn every_answer_is_kept_by_nobody_and_framed_by_nobody() {
    let world = World::new();
    let server = Server::start(&world);
    for path in [
        "/",
        "/main.js",
        "/style.css",
        "/healthz",
        "/api/v1/state",
        "/nothing",
    ] {
        let headers = server.get(path).headers;
        let policy = &headers["content-security-policy"];
        assert!(policy.starts_with("default-src 'none'"), "{path}: {policy}");
        assert!(
            !policy.contains("unsafe") && !policy.contains('*'),
            "{path}: {policy}"
        );
        assert!(
            policy.contains("frame-ancestors 'none'"),
            "{path}: {policy}"
        );
        assert_eq!(headers["x-content-type-options"], "nosniff", "{path}");
        assert_eq!(headers["referrer-policy"], "no-referrer", "{path}");
        assert!(headers["cache-control"].contains("no-store"), "{path}");
    }
}

#[test]
fn a_form_of_another_site_changes_nothing() {
    let world = World::new();
    let server = Server::start_with(&world, &["--listen", "127.0.0.1:0", "--allow-actions"]);
    let path = format!("/api/v1/sessions/claude-code/{}/dismiss", world.s1);
    for content_type in [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data",
        "",
    ] {
        let request = server.request("POST", &path, &[("Content-Type", content_type)], "{}");
        assert_eq!(server.send(&request).status, 415, "{content_type}");
    }
    let request = server.request("POST", &path, &[("Origin", "http://evil.example")], "{}");
    assert_eq!(server.send(&request).status, 403);
    // What changes something is never asked for by GET.
    assert_eq!(server.get(&path).status, 405);
}

/// Asks over a socket, as this user.
fn ask(path: &std::path::Path, token: &str) -> crate::client::Reply {
    let mut stream = UnixStream::connect(path).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(60)))
        .unwrap();
    let request = format!(
        "GET /api/v1/state HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: Bearer {token}\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).unwrap();
    read_reply(stream)
}

#[test]
fn other_users_get_nothing_over_a_socket() {
    let world = World::new();
    let path = world.root().join("s");
    let server = Server::start_with(&world, &["--socket", path.to_str().unwrap()]);
    let token =
        std::fs::read_to_string(world.home().join(".local/state/whosup/server/token")).unwrap();
    assert_eq!(ask(&path, token.trim_end()).status, 200);
    assert_eq!(ask(&path, "no").status, 401);

    // Even where the modes let them connect.
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o777)).unwrap();
    std::fs::set_permissions(world.root(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let client = "import socket, sys\n\
        s = socket.socket(socket.AF_UNIX); s.settimeout(60); s.connect(sys.argv[1])\n\
        s.sendall(b'GET /healthz HTTP/1.1\\r\\nHost: localhost\\r\\n\\r\\n')\n\
        print(len(s.recv(100)))";
    let other = Command::new("setpriv")
        .args(["--reuid=65534", "--clear-groups", "python3", "-c", client])
        .arg(&path)
        .output();
    let Some(other) = other
        .ok()
        .filter(|other| other.status.success() || is_reset(other))
    else {
        eprintln!("skipped: this user can't become another one, or there is no python3");
        return;
    };
    let said = String::from_utf8_lossy(&other.stdout);
    assert!(said.trim() == "0" || said.is_empty(), "{said}");
    assert_eq!(server.terminate(), 0);
    assert!(!path.exists(), "the socket goes with the server");
}

/// The connection was ended while the client still wrote.
fn is_reset(output: &std::process::Output) -> bool {
    let err = String::from_utf8_lossy(&output.stderr);
    err.contains("ConnectionResetError") || err.contains("BrokenPipeError")
}

#[test]
fn a_socket_that_nobody_listens_on_is_replaced_and_another_file_is_not() {
    let world = World::new();
    let path = world.root().join("s");
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    let server = Server::start_with(&world, &["--socket", path.to_str().unwrap()]);
    server.kill();
    std::fs::remove_file(&path).unwrap();
    std::fs::write(&path, "mine").unwrap();
    let mut command = world.whosup();
    let refused = crate::world::said(command.args(["serve", "--socket"]).arg(&path));
    assert_eq!(refused.status, 2, "{}", refused.err);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "mine");
    let mut none = Vec::new();
    std::fs::File::open(&path)
        .unwrap()
        .read_to_end(&mut none)
        .unwrap();
}
