//! A temporary home, and the sidecars in it.

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use whosup_core::sidecar::{Sidecar, SidecarPid, parse_sidecar, without_lone_surrogates};

/// How deep a home is searched.
const DEPTH_MAX: usize = 12;
/// How many files of a home are looked at.
const NAMES_MAX: usize = 20_000;
/// How many first bytes identify a file as the start of a sidecar.
const HEAD_BYTES: usize = 16;
/// The directory that sessions work in: it has a space and letters of two scripts.
const WORK_DIR: &str = "dossier é 会話";

/// A temporary home for one check.
pub(super) struct Arena {
    root: TempDir,
}

/// A sidecar that lies in a home.
#[derive(Debug)]
pub(super) struct Claim {
    pub(super) sidecar: Sidecar,
    pub(super) bytes: Vec<u8>,
}

impl Claim {
    pub(super) fn pid(&self) -> i32 {
        match self.sidecar.pid {
            SidecarPid::Process(pid) => pid.get(),
            SidecarPid::Released => 0,
        }
    }

    pub(super) fn session(&self) -> &str {
        self.sidecar.session_id.as_str()
    }
}

impl Arena {
    pub(super) fn new() -> io::Result<Self> {
        let root = tempfile::Builder::new()
            .prefix("whosup-conformance-")
            .tempdir()?;
        let arena = Self { root };
        fs::create_dir(arena.home())?;
        fs::create_dir(arena.work_dir())?;
        Ok(arena)
    }

    pub(super) fn root(&self) -> &Path {
        self.root.path()
    }

    pub(super) fn home(&self) -> PathBuf {
        self.root().join("home")
    }

    /// The target of `XDG_STATE_HOME`, which is not the default.
    pub(super) fn state(&self) -> PathBuf {
        self.root().join("home/state of its own")
    }

    /// The default of `XDG_STATE_HOME`.
    pub(super) fn default_state(&self) -> PathBuf {
        self.root().join("home/.local/state")
    }

    pub(super) fn work_dir(&self) -> PathBuf {
        self.root().join(WORK_DIR)
    }

    /// Gives every user write access.
    pub(super) fn open_to_all(&self) -> Result<(), String> {
        for directory in [self.root(), &self.home(), &self.work_dir()] {
            set_mode(directory, 0o777)?;
        }
        Ok(())
    }

    /// Every file below the home, by its path.
    pub(super) fn files(&self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        let mut open = vec![(self.root().to_owned(), 0)];
        while let Some((directory, depth)) = open.pop() {
            let Ok(entries) = fs::read_dir(&directory) else {
                continue;
            };
            for entry in entries.flatten() {
                let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
                if is_directory && depth < DEPTH_MAX {
                    open.push((entry.path(), depth + 1));
                } else if !is_directory && found.len() < NAMES_MAX {
                    found.push(entry.path());
                }
            }
        }
        found.sort();
        found
    }

    /// Every sidecar in the home, by path. An incomplete sidecar is an error.
    pub(super) fn claims(&self) -> Result<BTreeMap<PathBuf, Claim>, String> {
        self.claims_but(Path::new(""))
    }

    /// Every sidecar except one, which may be incomplete.
    pub(super) fn claims_but(&self, but: &Path) -> Result<BTreeMap<PathBuf, Claim>, String> {
        let mut claims = BTreeMap::new();
        let files = self.files().into_iter();
        for path in files.filter(|path| is_sidecar(path) && path != but) {
            match fs::read(&path) {
                Ok(bytes) => {
                    let sidecar = parse_sidecar(&bytes)
                        .map_err(|error| format!("`{}`: {error}", self.shown(&path)))?;
                    // Readers repair it, and other parsers refuse the file.
                    if without_lone_surrogates(&bytes).is_some() {
                        let path = self.shown(&path);
                        return Err(format!("`{path}`: an escape is half a surrogate pair"));
                    }
                    claims.insert(path, Claim { sidecar, bytes });
                }
                // The file was removed meanwhile.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(format!("`{}`: {error}", self.shown(&path))),
            }
        }
        Ok(claims)
    }

    /// The only sidecar in the home.
    pub(super) fn only_claim(&self) -> Result<(PathBuf, Claim), String> {
        let mut claims = self.claims()?;
        match claims.len() {
            1 => claims.pop_first().ok_or_else(|| "no sidecar".to_owned()),
            0 => Err("there is no sidecar anywhere in its home".to_owned()),
            many => {
                let paths: Vec<String> = claims.keys().map(|path| self.shown(path)).collect();
                Err(format!("{many} sidecars: {}", paths.join(", ")))
            }
        }
    }

    /// Temporary files beside sidecars like `claim`, without the agent's own files there.
    pub(super) fn strays(&self, beside: &Path, claim: &Claim) -> Vec<String> {
        let files = self.files().into_iter();
        files
            .filter(|path| path.parent() == Some(beside) && !is_sidecar(path))
            .filter(|path| {
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                fs::read(path).is_ok_and(|bytes| is_temporary(&name, &bytes, &claim.bytes))
            })
            .map(|path| self.shown(&path))
            .collect()
    }

    /// Complete temporary files beside sidecars, whose writer is therefore known. Half a file
    /// may still be written by another process.
    pub(super) fn whole_strays(&self, beside: &Path) -> Vec<String> {
        let is_whole =
            |path: &PathBuf| fs::read(path).is_ok_and(|bytes| parse_sidecar(&bytes).is_ok());
        let files = self.files().into_iter();
        files
            .filter(|path| path.parent() == Some(beside) && !is_sidecar(path))
            .filter(is_whole)
            .map(|path| self.shown(&path))
            .collect()
    }

    /// A path below the home, for messages.
    pub(super) fn shown(&self, path: &Path) -> String {
        let below = path.strip_prefix(self.root()).unwrap_or(path);
        below.display().to_string()
    }
}

/// Sets the mode of a file or directory.
pub(super) fn set_mode(path: &Path, mode: u32) -> Result<(), String> {
    fs::set_permissions(path, Permissions::from_mode(mode))
        .map_err(|error| format!("cannot set the mode of `{}`: {error}", path.display()))
}

/// Whether a file that is no sidecar was to become one like `sidecar`: it holds one or
/// a prefix of one, or it is empty and has the name of a temporary file.
fn is_temporary(name: &str, bytes: &[u8], sidecar: &[u8]) -> bool {
    let head = sidecar.get(..HEAD_BYTES).unwrap_or(sidecar);
    let is_named_so = name.starts_with('.') || name.to_ascii_lowercase().contains("tmp");
    if bytes.len() < head.len() {
        return is_named_so && head.starts_with(bytes);
    }
    bytes.starts_with(head) || parse_sidecar(bytes).is_ok()
}

/// Whether readers take a file for a sidecar, by name.
pub(super) fn is_sidecar(path: &Path) -> bool {
    path.file_name()
        .and_then(|name| name.to_str())
        .is_some_and(is_sidecar_name)
}

/// Whether readers take a name for that of a sidecar.
pub(super) fn is_sidecar_name(name: &str) -> bool {
    name == "runtime.json" || name.ends_with(".runtime.json")
}

#[cfg(test)]
mod tests {
    use super::is_temporary;

    const SIDECAR: &str = r#"{"schema_version":1,"pid":7,"session_id":"s","work_dir":"/w","hostname":"","started_at":1.5,"x_version":"1"}"#;

    #[track_caller]
    fn check_temporary(name: &str, holds: &str, expected: bool) {
        let answer = is_temporary(name, holds.as_bytes(), SIDECAR.as_bytes());
        assert_eq!(answer, expected, "{name} {holds:?}");
    }

    #[test]
    fn what_was_to_become_a_sidecar_is_a_temporary_file() {
        let spaced = SIDECAR.replace(',', ", ").replace(':', ": ");
        for holds in [SIDECAR, &SIDECAR[..40], &spaced] {
            check_temporary(".sidecar-0a.tmp", holds, true);
            check_temporary("s.runtime.json.1234", holds, true);
        }
        check_temporary(".sidecar-0a.tmp", "", true);
        check_temporary("s.json.tmp.12", "{\"sch", true);
    }

    #[test]
    fn what_an_agent_keeps_beside_its_sidecars_is_no_temporary_file() {
        check_temporary("context.jsonl", "", false);
        check_temporary(
            "s.jsonl",
            "{\"sessionId\":\"s\",\"type\":\"user\"}\n",
            false,
        );
        check_temporary(".lock", "4711\n", false);
    }
}
