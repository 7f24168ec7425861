//! One home under two names: hooks may reach it through a link that the scan does not use, or
//! the other way round.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use whosup_sidecar::AgentId;
use whosup_sidecar::file::{Links, facts_of_any};

use crate::adapter::{Adapter, AgentScan, Home};

use crate::machine::Machine;
use crate::sources::agents;

/// The directory that a path leads to on this machine: device and inode of the nearest existing
/// parent, and the rest of the path. (An agent makes its home at its first write.)
#[derive(Clone, PartialEq, Eq)]
struct Place(u64, u64, PathBuf);

fn place_of(path: &Path) -> Option<Place> {
    path.ancestors().find_map(|there| {
        let facts = facts_of_any(there, Links::Follow).ok()?;
        let rest = path.strip_prefix(there).ok()?;
        Some(Place(facts.device, facts.inode, rest.to_owned()))
    })
}

/// Renames homes in records to the names that the scan uses. A home on a mount that may hang
/// keeps its name.
pub(crate) fn name_homes_alike(
    found: &mut AgentScan,
    homes: &[(&'static dyn Adapter, Home)],
    machine: &Machine,
) {
    let roots = homes.iter();
    let roots: Vec<_> = roots
        .map(|(adapter, home)| (agents::id_of(*adapter), Arc::clone(&home.root)))
        .collect();
    let mut places = Places {
        machine,
        known: HashMap::new(),
    };
    let mut names: HashMap<(AgentId, Arc<Path>), Arc<Path>> = HashMap::new();
    let claims = found.claims.iter_mut().map(|claim| &mut claim.key);
    let sketches = found.sketches.iter_mut().map(|sketch| &mut sketch.key);
    for key in claims.chain(sketches) {
        let home = (key.agent.clone(), Arc::clone(&key.home));
        let name = names
            .entry(home)
            .or_insert_with(|| places.name_of(&key.agent, &key.home, &roots));
        key.home = Arc::clone(name);
    }
}

/// Where paths lead, each looked up once.
struct Places<'a> {
    machine: &'a Machine,
    known: HashMap<Arc<Path>, Option<Place>>,
}

impl Places<'_> {
    fn name_of(
        &mut self,
        agent: &AgentId,
        home: &Arc<Path>,
        homes: &[(AgentId, Arc<Path>)],
    ) -> Arc<Path> {
        let roots = || {
            homes
                .iter()
                .filter(|(of, _)| of == agent)
                .map(|(_, root)| root)
        };
        if roots().any(|root| root == home) {
            return Arc::clone(home);
        }
        let Some(place) = self.of(home) else {
            return Arc::clone(home);
        };
        let mut roots = roots();
        let same = roots.find(|root| self.of(root).as_ref() == Some(&place));
        Arc::clone(same.unwrap_or(home))
    }

    fn of(&mut self, path: &Arc<Path>) -> Option<Place> {
        if let Some(known) = self.known.get(path) {
            return known.clone();
        }
        let is_touchable = self.machine.mounts().touchable(path).is_ok();
        let place = is_touchable.then(|| place_of(path)).flatten();
        self.known.insert(Arc::clone(path), place.clone());
        place
    }
}

#[cfg(all(test, unix))]
#[allow(clippy::disallowed_methods, reason = "tests make their own files")]
mod tests {
    use super::*;

    #[test]
    fn a_home_that_is_not_there_yet_is_one_by_two_names() {
        let directory = tempfile::tempdir().unwrap();
        let real = directory.path().join("real");
        let link = directory.path().join("link");
        std::fs::create_dir(&real).unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        let place = |home: &Path, rest: &str| place_of(&home.join(rest)).unwrap();
        assert!(place(&real, ".agent") == place(&link, ".agent"));
        assert!(place(&real, ".config/agent") == place(&link, ".config/agent"));
        assert!(place(&real, ".agent") != place(&real, ".other"));
        std::fs::create_dir(real.join(".agent")).unwrap();
        assert!(place(&real, ".agent") == place(&link, ".agent"));
    }
}
