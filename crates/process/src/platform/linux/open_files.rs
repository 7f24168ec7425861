//! Which files one process has open, by the links of its descriptors.

use std::os::fd::OwnedFd;
use std::path::PathBuf;

use crate::{Absent, Field, OpenFile, Process};

use super::Proc;
use super::details::not_opened;
use super::holders::{DESCRIPTORS_MAX, read_file_id};
use super::look::Look;
use super::open::Opened;
use super::raw::{Listed, absent, for_each_number, open_listing, read_link};

/// Reads the open files of a process that have a path.
pub(super) fn read_open_files(table: &Proc, process: &Process) -> Field<Vec<OpenFile>> {
    let mut look = Look::open(table).map_err(|error| not_opened(&error))?;
    let opened = Opened::open_same(&mut look, process)?;
    if let Some(reason) = opened.bodiless() {
        return Err(reason);
    }
    let files = open_listing(opened.body(), "fd")
        .map_err(absent)
        .and_then(|descriptors| read_links(&descriptors))
        .map_err(|reason| opened.explain(reason, &mut look.buffer))?;
    if !opened.is_same(&mut look) {
        return Err(Absent::Vanished);
    }
    Ok(files)
}

fn read_links(descriptors: &OwnedFd) -> Field<Vec<OpenFile>> {
    let mut files = Vec::new();
    let listed = for_each_number(descriptors, DESCRIPTORS_MAX, |name, _| {
        // One that was closed meanwhile is not open.
        let Ok(link) = read_link(descriptors, name) else {
            return;
        };
        // Pipes and sockets have no path (`pipe:[4711]`).
        let path = PathBuf::from(link);
        if path.is_absolute()
            && let Ok(file) = read_file_id(descriptors, name)
        {
            files.push(OpenFile { path, file });
        }
    });
    match listed.map_err(absent)? {
        Listed::Whole => Ok(files),
        Listed::Cut => Err(Absent::TooMany {
            entries_max: DESCRIPTORS_MAX,
        }),
    }
}
