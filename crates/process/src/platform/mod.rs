//! One file or folder per operating system, each with the same seam.

use std::sync::Arc;

use crate::Backend;

#[cfg(target_os = "linux")]
pub mod linux;
pub mod unsupported;

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
