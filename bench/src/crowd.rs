//! Many processes that do nothing, each of which may hold some files.

use std::path::{Path, PathBuf};

use crate::pose::{Pose, Poses};
use crate::setting::Setting;

/// Starts processes; `holds` are the files of each.
pub(crate) fn start(
    setting: &Setting,
    folder: &Path,
    count: usize,
    holds: impl Fn(usize) -> Vec<PathBuf>,
) -> anyhow::Result<Poses> {
    let program = folder.join("opt/crowd");
    let mut poses = Poses::default();
    for number in 0..count {
        setting.go_on()?;
        let pose = Pose {
            program: &program,
            argv: &["crowd"],
            work_dir: folder,
            home: folder,
            name: None,
            holds: &holds(number),
        };
        poses.0.push(pose.start()?);
    }
    Ok(poses)
}
