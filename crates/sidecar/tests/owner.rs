//! The writer, on real files and with real processes.
#![cfg(unix)]
#![allow(
    clippy::exit,
    clippy::print_stderr,
    reason = "a driver exits on command; a skipped test prints why"
)]

#[path = "../examples/driver/protocol.rs"]
mod protocol;

#[path = "owner/world.rs"]
mod world;

#[path = "owner/ending.rs"]
mod ending;
#[path = "owner/failing.rs"]
mod failing;
#[path = "owner/one_process.rs"]
mod one_process;
#[path = "owner/several.rs"]
mod several;
#[path = "owner/threads.rs"]
mod threads;

use world::{DRIVER, World};

#[test]
fn a_driver_obeys_each_command() {
    if std::env::var_os(DRIVER).is_some() {
        protocol::serve().unwrap();
        // The test harness must not add to what was answered.
        std::process::exit(0);
    }
    let world = World::new();
    let mut driver = world.driver();
    driver.must("start s1");
    assert_eq!(world.names(), ["s1.runtime.json"]);
    driver.must("phase working");
    driver.must("switch s2");
    assert_eq!(world.names(), ["s2.runtime.json"]);
    assert_eq!(driver.ask("dance"), "unsupported");
    assert!(driver.ask("switch ../x").starts_with("error "));
    driver.must("release");
    assert!(world.names().is_empty());
    driver.end();
}
