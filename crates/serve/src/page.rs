//! The files of the dashboard, which are part of the program.

use axum::body::Body;

use crate::answer::{Answer, body_answer};

/// A file of the page.
pub(crate) struct File {
    pub(crate) path: &'static str,
    content_type: &'static str,
    content: &'static str,
}

const SCRIPT: &str = "text/javascript; charset=utf-8";

macro_rules! file {
    ($path:literal, $name:literal, $type:expr) => {
        File {
            path: $path,
            content_type: $type,
            content: include_str!(concat!("../assets/", $name)),
        }
    };
}

/// Every file.
pub(crate) const FILES: &[File] = &[
    file!("/", "index.html", "text/html; charset=utf-8"),
    file!("/style.css", "style.css", "text/css; charset=utf-8"),
    file!("/main.js", "main.js", SCRIPT),
    file!("/connection.js", "connection.js", SCRIPT),
    file!("/dom.js", "dom.js", SCRIPT),
    file!("/model.js", "model.js", SCRIPT),
    file!("/words.js", "words.js", SCRIPT),
    file!("/row.js", "row.js", SCRIPT),
    file!("/list.js", "list.js", SCRIPT),
    file!("/details.js", "details.js", SCRIPT),
    file!("/acts.js", "acts.js", SCRIPT),
    file!("/usage.js", "usage.js", SCRIPT),
    file!("/timeline.js", "timeline.js", SCRIPT),
    file!("/icon.svg", "icon.svg", "image/svg+xml"),
];

/// Whether a path is a file of the page.
pub(crate) fn has(path: &str) -> bool {
    FILES.iter().any(|file| file.path == path)
}

impl File {
    pub(crate) fn answer(&self) -> Answer {
        body_answer(self.content_type, Body::from(self.content))
    }
}
