//! Every route, in one table. A test compares it with `openapi.json`.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::http::{Method, StatusCode, header};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get, post};
use whosup_core::reader::ErrorCode;

use crate::actions::Action;
use crate::answer::{Answer, Answered, Failure, body_answer};
use crate::server::Server;
use crate::{access, actions, events, metrics, page, sessions, snapshot, timeline, usage};

/// The maximum size of a request's body, in bytes.
const BODY_BYTES_MAX: usize = 64 << 10;
/// How much of the reason of a refusal is sent, in bytes.
const REASON_BYTES_MAX: usize = 4 << 10;

/// The description of the routes.
pub(crate) const OPENAPI: &str = include_str!("../openapi.json");

/// A route.
pub(crate) struct Route {
    #[cfg_attr(
        not(test),
        expect(dead_code, reason = "the description is held against it")
    )]
    pub(crate) method: Method,
    pub(crate) path: &'static str,
    handler: fn() -> MethodRouter<Arc<Server>>,
}

const fn reading(path: &'static str, handler: fn() -> MethodRouter<Arc<Server>>) -> Route {
    Route {
        method: Method::GET,
        path,
        handler,
    }
}

const fn acting(path: &'static str, handler: fn() -> MethodRouter<Arc<Server>>) -> Route {
    Route {
        method: Method::POST,
        path,
        handler,
    }
}

/// Every route except the page's files. GET requests change nothing.
pub(crate) const ROUTES: &[Route] = &[
    reading("/healthz", || get(health)),
    reading("/metrics", || get(metrics::answer)),
    reading("/api/v1/openapi.json", || get(openapi)),
    reading("/api/v1/state", || get(snapshot::answer)),
    reading("/api/v1/events", || get(events::answer)),
    reading("/api/v1/timeline", || get(timeline::answer)),
    reading("/api/v1/usage", || get(usage::answer)),
    reading("/api/v1/sessions/{agent}/{id}", || get(sessions::show)),
    reading("/api/v1/sessions/{agent}/{id}/why", || get(sessions::why)),
    reading("/api/v1/sessions/{agent}/{id}/messages", || {
        get(sessions::messages)
    }),
    // A new action needs one more line here and in `Action`.
    acting("/api/v1/sessions/{agent}/{id}/end", || does(Action::End)),
    acting("/api/v1/sessions/{agent}/{id}/dismiss", || {
        does(Action::Dismiss)
    }),
    acting("/api/v1/sessions/{agent}/{id}/send", || does(Action::Send)),
    acting("/api/v1/sessions/{agent}/{id}/attach", || {
        does(Action::Attach)
    }),
    acting("/api/v1/sessions/{agent}/{id}/stop", || does(Action::Stop)),
];

fn does(action: Action) -> MethodRouter<Arc<Server>> {
    post(move |server, named, asked, body| actions::act(action, server, named, asked, body))
}

/// Whether a path needs no token: the page's files, which are the same for every user, and
/// the check that the server is there.
pub(crate) fn is_open(path: &str) -> bool {
    path == "/healthz" || page::has(path)
}

/// Builds the router.
pub(crate) fn router(server: Arc<Server>) -> Router {
    let mut router = Router::new();
    for route in ROUTES {
        router = router.route(route.path, (route.handler)());
    }
    for file in page::FILES {
        router = router.route(file.path, get(move || async move { file.answer() }));
    }
    router
        .fallback(|| async {
            Failure::new(StatusCode::NOT_FOUND, "not_found", "there is nothing here")
        })
        .method_not_allowed_fallback(|| async {
            let message = "this route has no such method";
            Failure::new(
                StatusCode::METHOD_NOT_ALLOWED,
                "method_not_allowed",
                message,
            )
        })
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
        .layer(from_fn(as_failure))
        .layer(from_fn_with_state(Arc::clone(&server), access::check))
        .layer(from_fn_with_state(Arc::clone(&server), count))
        .with_state(server)
}

async fn count(State(server): State<Arc<Server>>, request: Request, next: Next) -> Answer {
    server.tally.requests.fetch_add(1, Ordering::Relaxed);
    next.run(request).await
}

/// Gives the form of all failures to what the framework refuses in plain text: a path or a query
/// that can't be decoded, a body that is too long or broken.
async fn as_failure(request: Request, next: Next) -> Answer {
    let answer = next.run(request).await;
    let status = answer.status();
    let content_type = answer.headers().get(header::CONTENT_TYPE);
    let is_text = content_type.is_some_and(|value| value.as_bytes().starts_with(b"text/plain"));
    if !status.is_client_error() || !is_text {
        return answer;
    }
    let reason = axum::body::to_bytes(answer.into_body(), REASON_BYTES_MAX).await;
    let code = match status {
        StatusCode::PAYLOAD_TOO_LARGE => "too_large",
        _ => ErrorCode::BadArgument.name(),
    };
    Failure::new(
        status,
        code,
        String::from_utf8_lossy(&reason.unwrap_or_default()),
    )
    .answer()
}

async fn health() -> Answer {
    body_answer("text/plain; charset=utf-8", "ok\n")
}

async fn openapi() -> Answer {
    body_answer("application/json", OPENAPI)
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        self.answer()
    }
}

/// An answer that may fail, for the router.
pub(crate) struct Outcome(pub(crate) Answered);

impl IntoResponse for Outcome {
    fn into_response(self) -> Response {
        self.0.unwrap_or_else(Failure::answer)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::Value;

    use super::{OPENAPI, ROUTES};

    #[test]
    fn the_description_names_every_route_and_no_other() {
        let document: Value = serde_json::from_str(OPENAPI).unwrap();
        let paths = document["paths"].as_object().unwrap();
        let described: BTreeSet<(String, String)> = paths
            .iter()
            .flat_map(|(path, methods)| {
                let methods = methods.as_object().unwrap().keys();
                let methods = methods.filter(|method| *method != "parameters");
                methods.map(move |method| (method.to_uppercase(), path.clone()))
            })
            .collect();
        let routes = ROUTES.iter();
        let routes: BTreeSet<(String, String)> = routes
            .map(|route| (route.method.to_string(), route.path.to_owned()))
            .collect();
        assert_eq!(described, routes);
    }

    #[test]
    fn every_operation_says_what_it_answers_and_who_may_ask() {
        let document: Value = serde_json::from_str(OPENAPI).unwrap();
        assert_eq!(document["openapi"], "3.1.0");
        assert!(document["security"][0].get("token").is_some());
        for (path, methods) in document["paths"].as_object().unwrap() {
            for (method, operation) in methods.as_object().unwrap() {
                if method == "parameters" {
                    continue;
                }
                let responses = operation["responses"].as_object().unwrap();
                assert!(responses.contains_key("200"), "{method} {path}");
                let is_open = path == "/healthz";
                assert_eq!(responses.contains_key("401"), !is_open, "{method} {path}");
                assert_eq!(
                    responses.contains_key("415"),
                    method == "post",
                    "{method} {path}"
                );
            }
        }
    }
}
