//! One file or folder per operating system, each with the same seam.

use std::sync::Arc;

use crate::Backend;

#[cfg(target_os = "linux")]
pub mod linux;
pub mod unsupported;

/// Whether this process ignores a signal, as one does that `nohup` or a shell without job control
/// has started in the background. False if that can't be known.
#[must_use]
pub fn is_signal_ignored(signal: i32) -> bool {
    #[cfg(target_os = "linux")]
    let is_ignored = linux::is_signal_ignored(signal);
    #[cfg(not(target_os = "linux"))]
    let is_ignored = unsupported::is_signal_ignored(signal);
    is_ignored
}

/// The backend of the system that this program runs on; where there is none,
/// one that answers "cannot look" to everything.
#[must_use]
pub fn system_backend() -> Arc<dyn Backend> {
    #[cfg(target_os = "linux")]
    let backend = linux::Proc::system();
    #[cfg(not(target_os = "linux"))]
    let backend = unsupported::Unsupported;
    Arc::new(backend)
}
