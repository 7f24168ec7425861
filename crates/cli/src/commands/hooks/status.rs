//! The hooks that are installed in one home, in words and as JSON.

use whosup_core::adapter::Home;
use whosup_core::sidecar::AgentId;
use whosup_core::views::wire::timestamp;
use whosup_track::Installed;

use crate::json::reports::HooksOfHome;
use crate::text;

/// The hooks of an agent in one home.
pub(super) struct HomeStatus {
    pub(super) agent: AgentId,
    pub(super) set: Installed,
    /// When the last event arrived, in milliseconds since 1970.
    pub(super) heard_at_ms: Option<i64>,
}

impl HomeStatus {
    /// `installed`, `partial`, `elsewhere` (they run a whosup at another path) or `absent`.
    fn state(&self) -> &'static str {
        let is_elsewhere = !self.set.programs.is_empty();
        match (self.set.present.len(), self.set.missing.len()) {
            (0, _) if is_elsewhere => "elsewhere",
            (0, _) => "absent",
            (_, 0) => "installed",
            (_, _) => "partial",
        }
    }

    /// How many of them a person trusts; `None` for an agent without such trust.
    fn trusted(&self) -> Option<&'static str> {
        let is_set = !self.set.programs.is_empty();
        Some(match self.set.trusted.filter(|_| is_set)? {
            0 => "none",
            some if some < self.set.present.len() => "some",
            _ => "all",
        })
    }

    /// The state, the trust, and when the last event arrived.
    pub(super) fn words(&self, now_ms: i64, is_all_read: bool) -> String {
        let state = match (self.state(), self.set.programs.first()) {
            ("elsewhere", Some(program)) => format!("installed for {}", text::visible(program)),
            ("partial", _) => {
                let missing = self.set.missing.join(", ");
                format!("installed in part: {missing} are missing")
            }
            ("installed", _) => "installed".to_owned(),
            _ => "not installed".to_owned(),
        };
        let trusted = match self.trusted() {
            None => "",
            Some("none") => ", not trusted in the agent",
            Some("some") => ", trusted in part in the agent",
            Some(_) => ", trusted",
        };
        let heard = match self.heard_at_ms {
            Some(at_ms) => match text::age(now_ms, at_ms).as_str() {
                "now" => "last heard just now".to_owned(),
                age => format!("last heard {age} ago"),
            },
            None if is_all_read => "never heard".to_owned(),
            // The event may be in a record that could not be read, which `doctor` names.
            None => "not known whether ever heard".to_owned(),
        };
        format!("{state}{trusted}, {heard}")
    }

    /// The same as JSON.
    pub(super) fn document(&self, home: &Home, is_all_read: bool) -> HooksOfHome {
        HooksOfHome {
            agent: self.agent.to_string(),
            home: home.root.to_string_lossy().into_owned(),
            settings: self.set.path.to_string_lossy().into_owned(),
            state: self.state(),
            missing: self.set.missing.clone(),
            programs: self.set.programs.iter().cloned().collect(),
            trusted: self.trusted(),
            last_event_at: self.heard_at_ms.and_then(timestamp),
            is_last_event_known: self.heard_at_ms.is_some() || is_all_read,
        }
    }
}
