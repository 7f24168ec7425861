//! Hooks come late; files, directories and homes are damaged or moved.

use std::fs;
use std::path::Path;

use anyhow::Context as _;

use super::{Cast, is_running, name, pick};
use crate::world::{World, now_ms, text};

pub(super) fn late_hooks(world: &mut World, _: &Cast) -> anyhow::Result<Option<String>> {
    if world.late.is_empty() {
        return Ok(None);
    }
    let mut hooks = std::mem::take(&mut world.late);
    if world.chance.percent(50) {
        hooks.reverse();
    }
    let mut what = String::from("late hooks:");
    for hook in hooks {
        world.run_hook(&hook)?;
        world.session(hook.session)?;
        what += &format!(
            " {} by process {}",
            hook.payload,
            world.process(hook.process)?.pid()
        );
    }
    Ok(Some(what))
}

/// Cuts the file that says which process serves a session, or removes it.
fn damage(
    world: &mut World,
    how: fn(&Path) -> anyhow::Result<()>,
) -> anyhow::Result<Option<String>> {
    let can = |world: &World, at: usize| {
        let process = world.processes.get(at);
        is_running(world, at) && process.is_some_and(|process| process.current.is_some())
    };
    let Some(at) = pick(world, can) else {
        return Ok(None);
    };
    let agent = world.process(at)?.agent;
    let Some(file) = agent.claim_file(world, at) else {
        return Ok(None);
    };
    let path = world.home.join(&file);
    if !path.exists() {
        return Ok(None);
    }
    how(&path)?;
    world.process(at)?.is_damaged = true;
    world.is_damaged = true;
    Ok(Some(format!("{file} of {} is damaged", name(world, at))))
}

pub(super) fn tear(world: &mut World, _: &Cast) -> anyhow::Result<Option<String>> {
    damage(world, |path| {
        let length = fs::metadata(path)?.len();
        Ok(fs::File::options()
            .write(true)
            .open(path)?
            .set_len(length / 2)?)
    })
}

pub(super) fn lose(world: &mut World, _: &Cast) -> anyhow::Result<Option<String>> {
    damage(world, |path| Ok(fs::remove_file(path)?))
}

/// Crush keeps its sessions in the directory; they go where it goes.
fn forget_crush(world: &mut World, directory: usize) {
    for session in &mut world.sessions {
        if session.directory == directory && session.agent.id() == "crush" {
            session.is_on_disk = false;
        }
    }
}

pub(super) fn rename_directory(world: &mut World, _: &Cast) -> anyhow::Result<Option<String>> {
    let at = world.chance.below(world.directories.len());
    let place = world.directories.get_mut(at).context("a directory")?;
    let Some(now) = place.now.clone() else {
        return Ok(None);
    };
    let to = place.path.with_extension(format!("renamed-{}", now_ms()));
    fs::rename(&now, &to)?;
    place.now = Some(to.clone());
    place.is_moved = true;
    forget_crush(world, at);
    Ok(Some(format!(
        "{} is renamed to {}",
        now.display(),
        to.display()
    )))
}

pub(super) fn delete_directory(world: &mut World, _: &Cast) -> anyhow::Result<Option<String>> {
    let at = world.chance.below(world.directories.len());
    let place = world.directories.get_mut(at).context("a directory")?;
    let Some(now) = place.now.take() else {
        return Ok(None);
    };
    fs::remove_dir_all(&now)?;
    place.is_moved = true;
    forget_crush(world, at);
    Ok(Some(format!("{} is deleted", now.display())))
}

pub(super) fn remake_directory(world: &mut World, _: &Cast) -> anyhow::Result<Option<String>> {
    let at = world.chance.below(world.directories.len());
    let place = world.directories.get_mut(at).context("a directory")?;
    if place.now.as_ref() == Some(&place.path) {
        return Ok(None);
    }
    fs::create_dir_all(&place.path)?;
    place.now = Some(place.path.clone());
    let path = text(&place.path);
    Ok(Some(format!("{path} is made again")))
}

pub(super) fn rename_home(world: &mut World, _: &Cast) -> anyhow::Result<Option<String>> {
    let to = world.root.join("home-moved");
    if to.exists() {
        return Ok(None);
    }
    fs::rename(&world.home, &to)?;
    std::os::unix::fs::symlink(&to, &world.home)?;
    world.other_homes.push(to);
    Ok(Some("the home is renamed, and a link is left".to_owned()))
}

pub(super) fn link_home(world: &mut World, _: &Cast) -> anyhow::Result<Option<String>> {
    let link = world.root.join("home-link");
    if link.exists() {
        return Ok(None);
    }
    std::os::unix::fs::symlink(&world.home, &link)?;
    world.other_homes.push(link);
    Ok(Some("the home has a link".to_owned()))
}
