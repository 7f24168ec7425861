//! Does the same to many things, in several threads.

use std::panic::resume_unwind;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread::{Builder, available_parallelism, scope};

/// How many threads there are at most.
const THREADS_MAX: usize = 4;
/// How many things are worth a thread of their own.
const THINGS_MIN: usize = 4;

/// The results, in the order of the things.
pub(crate) fn map<T: Send, R: Send>(things: Vec<T>, work: impl Fn(T) -> R + Sync) -> Vec<R> {
    let helpers = threads().min(things.len() / THINGS_MIN).saturating_sub(1);
    if helpers == 0 {
        return things.into_iter().map(work).collect();
    }
    let queue = Mutex::new(things.into_iter().enumerate());
    let take = || {
        let mut done = Vec::new();
        loop {
            let next = queue.lock().unwrap_or_else(PoisonError::into_inner).next();
            let Some((at, thing)) = next else {
                return done;
            };
            done.push((at, work(thing)));
        }
    };
    let mut done = scope(|threads| {
        let started = (0..helpers).map_while(|_| {
            let helper = Builder::new().name("whosup-look".to_owned());
            // Without a thread this one does it all.
            helper.spawn_scoped(threads, take).ok()
        });
        let started: Vec<_> = started.collect();
        let mut done = take();
        for helper in started {
            match helper.join() {
                Ok(more) => done.extend(more),
                Err(panic) => resume_unwind(panic),
            }
        }
        done
    });
    done.sort_unstable_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, result)| result).collect()
}

/// As many as there are processors to use.
fn threads() -> usize {
    static FOUND: OnceLock<usize> = OnceLock::new();
    *FOUND.get_or_init(|| available_parallelism().map_or(1, |many| many.get().min(THREADS_MAX)))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::sync::Barrier;
    use std::thread::current;

    use super::{THINGS_MIN, map, threads};

    #[test]
    fn results_come_in_the_order_of_the_things() {
        let things: Vec<u32> = (0..1_000).collect();
        let doubled: Vec<u32> = things.iter().map(|one| one * 2).collect();
        assert_eq!(map(things, |one| one * 2), doubled);
        assert!(map(Vec::<u32>::new(), |one| one).is_empty());
    }

    #[test]
    fn things_are_done_at_the_same_time() {
        let many = threads();
        let met = Barrier::new(many);
        let things = vec![(); many * THINGS_MIN];
        let by = map(things, |()| {
            met.wait();
            current().id()
        });
        assert_eq!(by.into_iter().collect::<HashSet<_>>().len(), many);
    }
}
