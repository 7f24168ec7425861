//! Claims that are planted where a writer is about to put its own.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};
use whosup_core::machine::now_ms;
use whosup_core::process::{NamedProcess, Pid, Presence, Process, StampKind, system_backend};
use whosup_core::sidecar::{SidecarPid, parse_sidecar};

use super::arena::{Arena, Claim};
use super::check::{Kit, WITHOUT_RIGHTS};
use super::subject::Subject;

/// The session of the planted claim.
pub(super) const PLANTED: &str = "s-planted";
/// The session that the program serves before and after.
const BASE: &str = "s-base";

/// The fields of a claim.
pub(super) type Fields = Map<String, Value>;

/// A program that serves a session, the place of another session's claim, and processes
/// that claims can name.
pub(super) struct Stage {
    pub(super) arena: Arena,
    pub(super) subject: Subject,
    /// A live process that serves no session.
    witness: Subject,
    /// The PID of a process that has ended.
    gone: i32,
    /// The user whom planted files belong to.
    owner: Option<u32>,
    /// Where the claim of [`PLANTED`] lies.
    pub(super) path: PathBuf,
    /// The program's own claim at that place.
    pub(super) own: Claim,
}

/// Looks up the process of a run.
pub(super) fn process_of(subject: &Subject) -> Result<Process, String> {
    let pid = Pid::new(i64::from(subject.pid())).map_err(|error| error.to_string())?;
    let probed = system_backend().probe(pid);
    let process = probed.map_err(|error| error.to_string())?;
    process.ok_or_else(|| "the process has gone".to_owned())
}

impl Stage {
    /// With a program that runs as the user who runs the kit.
    pub(super) fn new(kit: &Kit) -> Result<Self, String> {
        let arena = kit.arena()?;
        let subject = kit.start_session(&arena, BASE)?;
        Self::around(kit, arena, subject, None)
    }

    /// With a program that runs without root's rights. `None` if that is not possible.
    pub(super) fn without_rights(kit: &Kit) -> Result<Option<Self>, String> {
        if !rustix::process::geteuid().is_root() {
            return Self::new(kit).map(Some);
        }
        let arena = kit.arena()?;
        arena.open_to_all()?;
        let Ok(mut subject) = kit.launch(&WITHOUT_RIGHTS, &arena).start() else {
            return Ok(None);
        };
        if subject.must(&format!("start {BASE}")).is_err() {
            return Ok(None);
        }
        Self::around(kit, arena, subject, Some(65_534)).map(Some)
    }

    fn around(
        kit: &Kit,
        arena: Arena,
        mut subject: Subject,
        owner: Option<u32>,
    ) -> Result<Self, String> {
        let mut ended = kit.start(&arena)?;
        let witness = kit.start(&arena)?;
        subject.must(&format!("switch {PLANTED}"))?;
        let (path, own) = arena.only_claim()?;
        subject.must(&format!("switch {BASE}"))?;
        ended.kill()?;
        Ok(Self {
            gone: ended.pid(),
            arena,
            subject,
            witness,
            owner,
            path,
            own,
        })
    }

    /// The directory of the claim.
    pub(super) fn directory(&self) -> &Path {
        self.path.parent().unwrap_or(&self.path)
    }

    /// The claim of a live process that serves [`PLANTED`] since now.
    pub(super) fn living(&self) -> Result<Fields, String> {
        self.naming(&self.witness)
    }

    /// The same claim for a process that has ended.
    pub(super) fn dead(&self) -> Result<Fields, String> {
        let mut fields = self.living()?;
        fields.insert("pid".to_owned(), json!(self.gone));
        Ok(fields)
    }

    /// The same claim for any run of the program.
    pub(super) fn naming(&self, run: &Subject) -> Result<Fields, String> {
        let parsed = serde_json::from_slice(&self.own.bytes);
        let mut fields: Fields = parsed.map_err(|error| error.to_string())?;
        let scope = system_backend().scope();
        let stamp = process_of(run)?.stamp;
        for key in ["executable", "phase", "waiting_for", "client_pid"] {
            fields.remove(key);
        }
        let mut set = |key: &str, value: Value| drop(fields.insert(key.to_owned(), value));
        set("pid", json!(run.pid()));
        set("started_at", seconds(now_ms()));
        set("process_start", json!(stamp.to_string()));
        set("process_start_kind", json!(stamp.kind().name()));
        if let Ok(boot) = scope.boot {
            set("boot_id", json!(boot.as_str()));
        }
        if let Ok(namespace) = scope.pid_namespace {
            set("pid_namespace", json!(namespace.0));
        }
        Ok(fields)
    }

    /// Puts a claim at the place of [`PLANTED`].
    pub(super) fn plant(&self, fields: &Fields) -> Result<Vec<u8>, String> {
        let bytes = bytes_of(fields);
        self.plant_file(&self.path, &bytes)?;
        Ok(bytes)
    }

    /// Puts a file beside the claims.
    pub(super) fn plant_file(&self, path: &Path, bytes: &[u8]) -> Result<(), String> {
        let planted = fs::create_dir_all(self.directory()).and_then(|()| {
            fs::write(path, bytes)?;
            fs::set_permissions(path, Permissions::from_mode(0o600))?;
            std::os::unix::fs::chown(path, self.owner, self.owner)
        });
        planted.map_err(|error| format!("cannot plant `{}`: {error}", path.display()))
    }

    /// Lets the program resume the session, and checks that the planted file stays as it is.
    pub(super) fn expect_left(&mut self, what: &str) -> Result<(), String> {
        let before = self.look();
        self.subject.must(&format!("switch {PLANTED}"))?;
        let taken = |how: &str| Err(format!("it {how} {what}"));
        if self.look() != before {
            return taken("replaced or removed");
        }
        let pid = self.subject.pid();
        let claims = self.arena.claims_but(&self.path)?;
        let own = claims.values().filter(|claim| claim.pid() == pid);
        let own: Vec<&str> = own.map(Claim::session).collect();
        if own != [PLANTED] {
            return Err(format!("beside {what} it has the claims {own:?}"));
        }
        self.subject.must(&format!("switch {BASE}"))?;
        if self.look() != before {
            return taken("in the end replaced or removed");
        }
        fs::remove_file(&self.path).ok();
        Ok(())
    }

    /// Lets the program resume the session, and checks that it has the only claim.
    pub(super) fn expect_taken(&mut self, what: &str) -> Result<(), String> {
        self.subject.must(&format!("switch {PLANTED}"))?;
        let (path, claim) = self
            .arena
            .only_claim()
            .map_err(|error| format!("it did not take over {what}: {error}"))?;
        if claim.pid() != self.subject.pid() || path != self.path {
            return Err(format!("it did not take over {what}"));
        }
        self.subject.must(&format!("switch {BASE}"))
    }

    /// The inode and the bytes of the file at the place. Only a regular file is opened: a
    /// FIFO would block until another process writes to it.
    pub(super) fn look(&self) -> Option<(u64, Vec<u8>)> {
        use std::os::unix::fs::MetadataExt as _;
        let facts = fs::symlink_metadata(&self.path).ok()?;
        let bytes = if facts.is_file() {
            fs::read(&self.path).unwrap_or_default()
        } else {
            Vec::new()
        };
        Some((facts.ino(), bytes))
    }
}

/// A date in the format of sidecars.
pub(super) fn seconds(ms: i64) -> Value {
    #[expect(clippy::cast_precision_loss, reason = "below 2^53")]
    let seconds = ms as f64 / 1000.0;
    json!(seconds)
}

/// The text of a claim.
pub(super) fn bytes_of(fields: &Fields) -> Vec<u8> {
    Value::Object(fields.clone()).to_string().into_bytes()
}

/// Whether whosup itself can prove here that the process of a claim is gone.
pub(super) fn is_provably_gone(fields: &Fields) -> bool {
    let Ok(sidecar) = parse_sidecar(&bytes_of(fields)) else {
        return false;
    };
    let SidecarPid::Process(pid) = sidecar.pid else {
        return true;
    };
    let named = NamedProcess {
        host: Some(sidecar.hostname.as_str()),
        boot: sidecar.boot_id.as_ref(),
        pid_namespace: sidecar.pid_namespace,
        pid,
        stamp: sidecar.process_start.as_ref(),
        platform: sidecar.process_start_kind.map(StampKind::platform),
        dated_at_ms: Some(sidecar.started_at_ms),
        is_file_shared: false,
    };
    named.presence(&system_backend()) == Presence::Exited
}
