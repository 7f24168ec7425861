//! Watches the sessions of one machine: what `whosup list` shows, and each change of it.
//!
//! **Events decide when, a scan decides what.** An [`Engine`] waits for processes to exit, for
//! files to change and for agents to be launched. On an event it scans the machine like `whosup
//! list`, compares, and publishes the difference. It judges nothing itself and keeps no state of
//! its own about sessions. While nothing happens, it does nothing.
//!
//! ```text
//!  events ──► engine ──► look ──► steady ──► diff ──► history ──► subscriptions
//!  (epoll)    (when)     (scan)   (no noise)          (cursors)   (each with its filter)
//! ```
//!
//! One engine serves any number of subscribers: each has a [`Filter`] and a place in the
//! bounded [history](Cursor) of changes.
//!
//! ```no_run
//! use whosup_live::{Engine, Filter, ThisMachine};
//!
//! let engine = Engine::start(ThisMachine::default())?;
//! for message in engine.subscribe(Filter::default(), None) {
//!     println!("{message}");
//! }
//! # Ok::<(), whosup_live::EngineError>(())
//! ```

mod change;
mod cursor;
mod death;
mod diff;
mod engine;
mod filter;
mod history;
mod look;
mod pace;
mod reply;
mod rows;
mod signals;
mod steady;
mod subscription;
mod until;
mod wait;
mod world;

pub use self::change::{Change, Why, replay};
pub use self::cursor::{Cursor, CursorError};
pub use self::diff::diff;
pub use self::engine::{Counts, Engine, EngineError};
pub use self::filter::Filter;
pub use self::reply::{Watched, failed};
pub use self::rows::{Gone, Row, Rows};
pub use self::signals::{Happened, Signals};
pub use self::subscription::{Closer, Message, Received, Subscription};
pub use self::until::Until;
pub use self::wait::{SessionFields, Wait, Waited, Waiting, WatchError, Whom};
pub use self::world::{ParseConfig, ThisMachine, World, WorldError};
