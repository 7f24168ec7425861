//! Answers and failures.

use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, Response, StatusCode, header};
use serde_json::{Value, json};
use whosup_core::reader::{ErrorCode, ReadError};
use whosup_core::views::wire::WireError;

/// An answer.
pub(crate) type Answer = Response<Body>;

/// An answer, or why there is none.
pub(crate) type Answered = Result<Answer, Failure>;

/// Why there is no answer: a status, and the message for the client.
#[derive(Debug)]
pub(crate) struct Failure {
    status: StatusCode,
    error: Value,
}

impl Failure {
    pub(crate) fn new(status: StatusCode, code: &str, message: impl Into<String>) -> Self {
        let message = message.into();
        Self {
            status,
            error: json!({ "code": code, "message": message, "candidates": [] }),
        }
    }

    /// The request is wrong.
    pub(crate) fn bad(message: impl Into<String>) -> Self {
        Self::new(
            StatusCode::BAD_REQUEST,
            ErrorCode::BadArgument.name(),
            message,
        )
    }

    /// There are too many such requests at once.
    pub(crate) fn busy(message: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "busy", message)
    }

    /// The same with the sessions that may be meant.
    pub(crate) fn with_candidates(mut self, candidates: Value) -> Self {
        self.error["candidates"] = candidates;
        self
    }

    pub(crate) fn answer(self) -> Answer {
        let mut answer = json_answer(&json!({ "error": self.error }));
        *answer.status_mut() = self.status;
        answer
    }
}

impl<E: Into<ReadError>> From<E> for Failure {
    fn from(error: E) -> Self {
        let error = error.into();
        let status = match error.code() {
            ErrorCode::Ambiguous => StatusCode::CONFLICT,
            ErrorCode::BadArgument => StatusCode::BAD_REQUEST,
            ErrorCode::NoSuchAgent | ErrorCode::NoSuchSession => StatusCode::NOT_FOUND,
            ErrorCode::Unreadable => StatusCode::SERVICE_UNAVAILABLE,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        };
        let WireError {
            code,
            message,
            candidates,
        } = (&error).into();
        Self::new(status, code, message).with_candidates(json!(candidates))
    }
}

/// A document.
pub(crate) fn json_answer(document: &Value) -> Answer {
    body_answer("application/json", document.to_string())
}

/// A body of one type.
pub(crate) fn body_answer(content_type: &'static str, body: impl Into<Body>) -> Answer {
    let mut answer = Response::new(body.into());
    let value = HeaderValue::from_static(content_type);
    answer.headers_mut().insert(header::CONTENT_TYPE, value);
    answer
}

/// Headers of every answer: it is not cached, not framed, and not taken for another type;
/// a page runs only the program's own scripts.
const HEADERS: [(HeaderName, &str); 7] = [
    (header::CACHE_CONTROL, "no-store"),
    (
        header::CONTENT_SECURITY_POLICY,
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
         img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
         require-trusted-types-for 'script'; trusted-types 'none'",
    ),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::REFERRER_POLICY, "no-referrer"),
    (
        HeaderName::from_static("cross-origin-resource-policy"),
        "same-origin",
    ),
    (
        HeaderName::from_static("cross-origin-opener-policy"),
        "same-origin",
    ),
];

/// Adds the headers of every answer, unless the answer sets them.
pub(crate) fn guarded(mut answer: Answer) -> Answer {
    for (name, value) in HEADERS {
        let headers = answer.headers_mut();
        headers
            .entry(name)
            .or_insert(HeaderValue::from_static(value));
    }
    answer
}
