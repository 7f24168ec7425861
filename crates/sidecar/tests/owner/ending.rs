//! What is left when a writer is killed, and who clears it.

use std::path::Path;
use std::time::{Duration, SystemTime};

use super::world::World;

/// Delays that differ from run to run without a source of chance.
fn delays() -> impl Iterator<Item = Duration> {
    (0_u64..40).map(|at| Duration::from_micros(at * at * 7 % 5_000))
}

#[test]
fn a_writer_killed_at_any_point_leaves_whole_files_and_nothing_after_the_next() {
    let world = World::new();
    for (round, delay) in delays().enumerate() {
        let mut driver = world.driver();
        driver.must("start s-first");
        for at in 0..200 {
            driver.send_line(&format!("switch s{at}"));
            driver.send_line("phase working");
        }
        std::thread::sleep(delay);
        driver.kill();
        let left = world.sidecars();
        assert!(
            (1..=2).contains(&left.len()),
            "round {round}: {:?}",
            world.names()
        );
        let mut next = world.driver();
        for name in left.keys() {
            let id = name.strip_suffix(".runtime.json").unwrap();
            next.must(&format!("start {id}"));
            next.must("release");
        }
        assert!(
            world.names().is_empty(),
            "round {round}: {:?}",
            world.names()
        );
        next.end();
    }
}

fn set_age(path: &Path, age: Duration) {
    let file = std::fs::File::options().write(true).open(path).unwrap();
    file.set_modified(SystemTime::now() - age).unwrap();
}

#[test]
fn temporary_files_go_only_when_their_writer_is_certainly_gone() {
    let world = World::new();
    let mut dead = world.driver();
    dead.must("start s1");
    let of_dead = std::fs::read_to_string(world.path("s1.runtime.json")).unwrap();
    dead.kill();
    let mut live = world.driver();
    live.must("start s2");
    let of_live = std::fs::read_to_string(world.path("s2.runtime.json")).unwrap();
    let hours = Duration::from_secs(2 * 3600);
    let temporary = |digit: char| format!(".sidecar-{}.tmp", digit.to_string().repeat(16));
    world.write(&temporary('1'), &of_dead);
    world.write(&temporary('2'), &of_live);
    set_age(&world.path(&temporary('2')), hours);
    world.write(&temporary('3'), "{\"schema_ver");
    world.write(&temporary('4'), "{\"schema_ver");
    set_age(&world.path(&temporary('4')), hours);
    world.write(".sidecar-5.tmp", &of_dead);
    world.write("s9.claim-ab.runtime.json", &of_dead);
    world.write("notes.tmp", "");
    set_age(&world.path("notes.tmp"), hours);
    let target = world.path("notes.tmp");
    std::os::unix::fs::symlink(target, world.path(&temporary('6'))).unwrap();
    let owner = world.establish("s3");
    owner.release().unwrap();
    let mut right = vec![
        temporary('2'),
        temporary('3'),
        ".sidecar-5.tmp".to_owned(),
        temporary('6'),
        "notes.tmp".to_owned(),
        "s1.runtime.json".to_owned(),
        "s2.runtime.json".to_owned(),
        "s9.claim-ab.runtime.json".to_owned(),
    ];
    right.sort();
    assert_eq!(world.names(), right);
}

#[test]
fn a_program_that_executes_another_takes_its_file_up_again() {
    let world = World::new();
    let mut driver = world.driver();
    driver.must("start s1");
    let before = world.sidecars();
    driver.must("exec");
    driver.must("start s1");
    driver.must("phase working");
    let after = world.sidecars();
    assert_eq!(world.names(), ["s1.runtime.json"]);
    let (before, after) = (&before["s1.runtime.json"], &after["s1.runtime.json"]);
    assert_eq!(before.pid, after.pid);
    assert_eq!(before.process_start, after.process_start);
    assert_eq!(after.phase.as_deref(), Some("working"));
    driver.must("release");
    assert!(world.names().is_empty());
}
