//! Decides which requests get an answer.
//!
//! A web page of another site can make a browser send requests here. It can't set the requested
//! host name (which shows DNS rebinding), hide its own origin, or know the token.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, Method, Request, StatusCode, header};
use axum::middleware::Next;
use tokio::time::timeout;

use crate::answer::{Answer, Failure, guarded};
use crate::routes::is_open;
use crate::server::Server;

/// How long a request for an action may take, with its body.
const ACT_TIME_MAX: Duration = Duration::from_secs(60);

/// The names of this server.
#[derive(Debug, Clone)]
pub(crate) struct Names {
    /// It can only be reached from this machine.
    pub(crate) is_local: bool,
    /// It speaks TLS.
    pub(crate) is_tls: bool,
    /// The name of this machine.
    pub(crate) host: Option<String>,
}

/// Checks a request, and passes it on if it is allowed.
pub(crate) async fn check(
    State(server): State<Arc<Server>>,
    request: Request<Body>,
    next: Next,
) -> Answer {
    match permitted(&server, &request) {
        Ok(()) if *request.method() == Method::POST => {
            let acted = timeout(ACT_TIME_MAX, next.run(request)).await;
            guarded(acted.unwrap_or_else(|_| too_late().answer()))
        }
        Ok(()) => guarded(next.run(request).await),
        Err(failure) => guarded(failure.answer()),
    }
}

fn too_late() -> Failure {
    let message = "the request took too long";
    Failure::new(StatusCode::REQUEST_TIMEOUT, "timed_out", message)
}

fn permitted(server: &Server, request: &Request<Body>) -> Result<(), Failure> {
    let headers = request.headers();
    server.names.check_host(headers)?;
    server.names.check_origin(headers)?;
    let path = request.uri().path();
    if !is_open(path) {
        check_site(headers)?;
        check_token(server, headers)?;
    }
    match *request.method() {
        Method::GET | Method::HEAD => Ok(()),
        _ => check_content_type(headers),
    }
}

fn forbidden(message: impl Into<String>) -> Failure {
    Failure::new(StatusCode::FORBIDDEN, "forbidden", message)
}

/// The text of a header; `None` unless it is there exactly once.
fn only<'a>(headers: &'a HeaderMap, name: &header::HeaderName) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?.to_str().ok()?;
    values.next().is_none().then_some(value)
}

impl Names {
    fn check_host(&self, headers: &HeaderMap) -> Result<(), Failure> {
        let host = only(headers, &header::HOST);
        if host.is_some_and(|host| self.knows(name_of(host))) {
            return Ok(());
        }
        let shown = host.unwrap_or_default().escape_debug();
        Err(forbidden(format!("`{shown}` is no name of this server")))
    }

    /// An IP address is a name of this server: DNS rebinding needs a name that another party
    /// controls.
    fn knows(&self, name: &str) -> bool {
        if name.eq_ignore_ascii_case("localhost") {
            return true;
        }
        let address = name.trim_start_matches('[').trim_end_matches(']');
        match address.parse::<IpAddr>() {
            Ok(address) => !self.is_local || address.is_loopback(),
            Err(_) => {
                let own = self.host.as_deref().filter(|_| !self.is_local);
                own.is_some_and(|own| own.eq_ignore_ascii_case(name))
            }
        }
    }

    /// Only browsers send an origin, and only this server's own page is allowed.
    fn check_origin(&self, headers: &HeaderMap) -> Result<(), Failure> {
        if !headers.contains_key(header::ORIGIN) {
            return Ok(());
        }
        let scheme = if self.is_tls { "https" } else { "http" };
        let own = only(headers, &header::HOST).map(|host| format!("{scheme}://{host}"));
        if own.is_some() && only(headers, &header::ORIGIN) == own.as_deref() {
            return Ok(());
        }
        Err(forbidden("pages of other origins get no answer"))
    }
}

/// The name in a `Host`, without the port.
fn name_of(host: &str) -> &str {
    match host.rsplit_once(':') {
        // The colons of an address of IPv6 are in brackets.
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    }
}

/// Browsers report the site of a request (`Sec-Fetch-Site`), even without an origin.
fn check_site(headers: &HeaderMap) -> Result<(), Failure> {
    match headers.get("sec-fetch-site").map(|site| site.as_bytes()) {
        None | Some(b"same-origin" | b"none") => Ok(()),
        Some(_) => Err(forbidden("pages of other sites get no answer")),
    }
}

fn check_token(server: &Server, headers: &HeaderMap) -> Result<(), Failure> {
    let offered = only(headers, &header::AUTHORIZATION);
    let offered = offered.and_then(|value| {
        let (scheme, token) = value.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then_some(token)
    });
    if offered.is_some_and(|token| server.tokens.is(token)) {
        return Ok(());
    }
    let path = server.tokens.directory().join("token");
    Err(Failure::new(
        StatusCode::UNAUTHORIZED,
        "unauthorized",
        format!(
            "send `Authorization: Bearer TOKEN`; the token is in `{}`, and `whosup serve --status` prints it",
            path.display()
        ),
    ))
}

/// A form of another site can send text, but no JSON.
fn check_content_type(headers: &HeaderMap) -> Result<(), Failure> {
    let value = only(headers, &header::CONTENT_TYPE).unwrap_or_default();
    let essence = value.split(';').next().unwrap_or_default().trim();
    if essence.eq_ignore_ascii_case("application/json") {
        return Ok(());
    }
    Err(Failure::new(
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        "unsupported_media_type",
        "send `Content-Type: application/json`",
    ))
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderMap, HeaderValue, header};

    use super::Names;

    fn names(is_local: bool) -> Names {
        Names {
            is_local,
            is_tls: false,
            host: Some("devbox".to_owned()),
        }
    }

    #[track_caller]
    fn check_host(host: &str, is_local: bool, expected: bool) {
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, HeaderValue::from_str(host).unwrap());
        let answer = names(is_local).check_host(&headers);
        assert_eq!(answer.is_ok(), expected, "{host}, local: {is_local}");
    }

    #[test]
    fn only_names_that_can_not_be_rebound_are_answered() {
        for host in [
            "127.0.0.1:4",
            "127.9.9.9",
            "localhost:80",
            "LocalHost",
            "[::1]:80",
        ] {
            check_host(host, true, true);
            check_host(host, false, true);
        }
        for host in ["10.1.2.3:80", "devbox:80", "[2001:db8::1]"] {
            check_host(host, true, false);
            check_host(host, false, true);
        }
        for host in [
            "evil.example",
            "127.0.0.1.evil.example",
            "localhost.evil.example",
            "",
        ] {
            check_host(host, true, false);
            check_host(host, false, false);
        }
    }

    #[test]
    fn two_hosts_are_no_host() {
        let mut headers = HeaderMap::new();
        headers.append(header::HOST, HeaderValue::from_static("localhost"));
        headers.append(header::HOST, HeaderValue::from_static("evil.example"));
        assert!(names(true).check_host(&headers).is_err());
    }

    #[track_caller]
    fn check_origin(origin: &'static str, expected: bool) {
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, HeaderValue::from_static("127.0.0.1:4"));
        headers.insert(header::ORIGIN, HeaderValue::from_static(origin));
        let answer = names(true).check_origin(&headers);
        assert_eq!(answer.is_ok(), expected, "{origin}");
    }

    #[test]
    fn only_the_server_s_own_page_may_ask() {
        check_origin("http://127.0.0.1:4", true);
        for origin in [
            "http://127.0.0.1:5",
            "https://127.0.0.1:4",
            "http://localhost:4",
            "null",
            "",
        ] {
            check_origin(origin, false);
        }
    }
}
