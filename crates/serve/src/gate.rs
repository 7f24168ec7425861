//! Limits how much of one kind is done at once.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::answer::Failure;

/// Lets so many in at once, lets so many wait, and refuses all others.
pub(crate) struct Gate {
    inside: Arc<Semaphore>,
    waiting: Semaphore,
}

impl Gate {
    pub(crate) fn new(inside_max: usize, waiting_max: usize) -> Self {
        Self {
            inside: Arc::new(Semaphore::new(inside_max)),
            waiting: Semaphore::new(waiting_max),
        }
    }

    /// Waits for a place, which is free again when the returned value is dropped.
    pub(crate) async fn enter(&self) -> Result<OwnedSemaphorePermit, Failure> {
        let busy = || Failure::busy("too many requests are being answered; try again");
        let _waiting = self.waiting.try_acquire().map_err(|_| busy())?;
        let inside = Arc::clone(&self.inside).acquire_owned().await;
        inside.map_err(|_| busy())
    }
}
