//! The bytes of a sidecar.

use std::path::Path;

use serde_json::{Value, json};

use super::announced::{Agent, Phase, Session};
use super::{Identity, WriteError};
use crate::{Resume, SIDECAR_BYTES_MAX, SIDECAR_SCHEMA};

/// Writes a sidecar: the fields of the schema first, in its order, then what
/// names the process for ever, then what is for display.
pub(super) fn sidecar_bytes(
    agent: &Agent,
    identity: &Identity,
    session: &Session,
    phase: Option<Phase>,
    started_at_ms: i64,
) -> Result<Vec<u8>, WriteError> {
    let mut fields = Fields::default();
    fields.add("schema_version", json!(SIDECAR_SCHEMA));
    fields.add("pid", json!(identity.pid.get()));
    fields.add("session_id", json!(session.id.as_str()));
    fields.add("work_dir", path("work_dir", &session.work_dir)?);
    fields.add("hostname", json!(identity.hostname));
    // Exact: the dates of schema 1 stay below 2^53 milliseconds.
    #[expect(clippy::cast_precision_loss, reason = "below 2^53")]
    fields.add("started_at", json!(started_at_ms as f64 / 1000.0));
    let version_key = format!("{}_version", agent.id.as_str().replace('-', "_"));
    fields.add(&version_key, json!(agent.version));
    add_identity(&mut fields, identity);
    if let Some(serves) = agent.serves {
        fields.add("serves", json!(serves.name()));
    }
    add_display(&mut fields, session, phase)?;
    let bytes = fields.finish();
    if bytes.len() as u64 > SIDECAR_BYTES_MAX {
        return Err(WriteError::TooLarge { bytes: bytes.len() });
    }
    Ok(bytes)
}

fn add_identity(fields: &mut Fields, identity: &Identity) {
    if let Some(stamp) = &identity.stamp {
        fields.add("process_start", json!(stamp.to_string()));
        fields.add("process_start_kind", json!(stamp.kind().name()));
    }
    if let Some(boot_id) = &identity.boot_id {
        fields.add("boot_id", json!(boot_id.as_str()));
    }
    if let Some(namespace) = identity.pid_namespace {
        fields.add("pid_namespace", json!(namespace.0));
    }
    // A program at a path that is no Unicode can't be named.
    if let Some(executable) = identity.executable.as_deref().and_then(Path::to_str) {
        fields.add("executable", json!(executable));
    }
}

fn add_display(
    fields: &mut Fields,
    session: &Session,
    phase: Option<Phase>,
) -> Result<(), WriteError> {
    if let Some(phase) = phase {
        fields.add("phase", json!(phase.name()));
        if let Some(what) = phase.waiting_for() {
            fields.add("waiting_for", json!(what.name()));
        }
    }
    if let Some(transcript) = &session.transcript {
        fields.add("transcript", path("transcript", transcript)?);
    }
    if let Some(pid) = session.client_pid {
        fields.add("client_pid", json!(pid.get()));
    }
    match &session.resume {
        Some(Resume::Argv(argv)) => fields.add("resume", json!(argv)),
        Some(Resume::Line(line)) => fields.add("resume", json!(line)),
        None => {}
    }
    if let Some(endpoint) = &session.endpoint {
        fields.add("endpoint", json!(endpoint));
    }
    Ok(())
}

/// A path as text: what is no Unicode has no true name in JSON.
fn path(field: &'static str, path: &Path) -> Result<Value, WriteError> {
    let refused = |reason| WriteError::Path {
        field,
        path: path.to_owned(),
        reason,
    };
    match path.to_str() {
        None => Err(refused("is not Unicode")),
        Some("") => Err(refused("is empty")),
        Some(text) if text.contains('\0') => Err(refused("has a NUL")),
        Some(text) => Ok(json!(text)),
    }
}

/// A JSON object whose fields stand in the order in which they were added.
#[derive(Default)]
struct Fields(String);

impl Fields {
    fn add(&mut self, key: &str, value: Value) {
        self.0.push(if self.0.is_empty() { '{' } else { ',' });
        self.0.push_str(&json!(key).to_string());
        self.0.push(':');
        self.0.push_str(&value.to_string());
    }

    fn finish(mut self) -> Vec<u8> {
        self.0.push_str("}\n");
        self.0.into_bytes()
    }
}
