//! Hooks are set in an agent's settings and taken out again, and then the file
//! is as it was, to the byte; or they are refused, and it is as it was.

#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use whosup_core::sources::agents::AGENTS;
use whosup_core::machine::Environment;
use whosup_track::{HookSite, Store, installed, make, plan_install, plan_uninstall};

fuzz_target!(|input: (u8, &[u8])| {
    let (which, bytes) = input;
    let with_hooks: Vec<_> = AGENTS.iter().filter_map(|all| Some((*all, all.profile().hooks?))).collect();
    let (adapter, hooks) = with_hooks[usize::from(which) % with_hooks.len()];
    let directory = tempfile::tempdir().expect("a directory");
    let home = directory.path().join("home");
    let environment = Environment::new(Some(home.clone()), Some(home.clone()), []);
    let store = Store::of(&environment).expect("a place");
    let agent_home = home.join("agent");
    let Some(path) = hooks.settings[0].path(&agent_home, &environment) else { return };
    std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
    std::fs::write(&path, bytes).expect("a file");
    let site = HookSite {
        adapter,
        home: &agent_home,
        environment: &environment,
        program: Path::new("/usr/bin/whosup"),
    };
    let is_as_it_was = || std::fs::read(&path).is_ok_and(|now| now == bytes);
    let was_set = installed(&site, &store).is_ok_and(|set| !set.programs.is_empty());
    match plan_install(&site, &store) {
        Ok(Some(change)) => {
            make(&change).expect("a change");
            let set = installed(&site, &store).expect("settings that can be read");
            assert_eq!(set.missing, [] as [String; 0]);
            assert!(plan_install(&site, &store).expect("a plan").is_none(), "not idempotent");
            let change = plan_uninstall(&site, &store).expect("a plan").expect("a change");
            make(&change).expect("a change");
            assert!(was_set || is_as_it_was(), "{}: not as it was", adapter.profile().id);
        }
        Ok(None) => assert!(is_as_it_was()),
        Err(error) => {
            assert!(is_as_it_was(), "{error}");
            assert!(!error.to_string().is_empty());
        }
    }
});
