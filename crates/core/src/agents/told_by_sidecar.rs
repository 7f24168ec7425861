//! What a sidecar tells of a session beside which process serves it.

use whosup_sidecar::Sidecar;

use super::Published;
use crate::phase::{Phase, WaitingFor};

/// What the conversation is doing, if that is said.
pub(crate) fn phase(sidecar: &Sidecar) -> Option<Published> {
    let word = sidecar.phase.as_ref()?;
    let waiting_for = sidecar.waiting_for.as_deref();
    Some(Published {
        phase: Phase::from_name(word),
        waiting_for: waiting_for.and_then(WaitingFor::from_name),
        word: word.clone(),
        at_ms: None,
    })
}

/// Where the process listens, if that is said.
pub(crate) fn endpoint(sidecar: &Sidecar) -> Option<String> {
    sidecar.endpoint.as_deref().map(without_secrets)
}

/// A URL without what may be a secret in it: a user, a query, a fragment.
pub(crate) fn without_secrets(endpoint: &str) -> String {
    let Some((scheme, rest)) = endpoint.split_once("://") else {
        return endpoint.to_owned();
    };
    let rest = rest.split(['?', '#']).next().unwrap_or_default();
    let (host, path) = match rest.find('/') {
        Some(at) => rest.split_at(at),
        None => (rest, ""),
    };
    let host = host.rsplit('@').next().unwrap_or_default();
    format!("{scheme}://{host}{path}")
}

#[cfg(test)]
mod tests {
    use super::without_secrets;

    #[test]
    fn secrets_of_an_endpoint_are_left_out() {
        for (endpoint, shown) in [
            ("/run/agent.sock", "/run/agent.sock"),
            ("http://127.0.0.1:80/x", "http://127.0.0.1:80/x"),
            ("http://u:secret@h:1/x?token=secret#secret", "http://h:1/x"),
            ("ws://h?token=secret", "ws://h"),
            ("unix:///run/a@b.sock", "unix:///run/a@b.sock"),
        ] {
            assert_eq!(without_secrets(endpoint), shown);
        }
    }
}
