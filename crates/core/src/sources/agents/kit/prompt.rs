//! Finds what a person typed among what agents, editors and hooks send to a
//! model in the person's name.
//!
//! Markers that several agents share are listed here. An adapter declares the markers of its
//! agent as [`Wrapping`].

use crate::sources::agents::kit::title::one_line;

/// Elements (`<name …>…</name>`) that stand where a prompt does. A name that
/// ends in `-` or `_` stands for every name that begins like this.
const ELEMENTS: &[&str] = &[
    "bash-",
    "command-",
    "hook_context",
    "ide_",
    "local-command-",
    "subagent-notification",
    "subagent_notification",
    "system-reminder",
    "system_reminder",
    "task-notification",
    "teammate-message",
    "user-memory-input",
    "user-prompt-submit-hook",
];

/// How texts begin that an agent writes in the place of a prompt. One that ends in `>` is the
/// whole text.
const NOTICES: &[&str] = &[
    "Operation stopped by hook",
    "This session is being continued from a previous conversation",
    "[Request interrupted",
];

/// How the context begins that an editor puts before a request.
const EDITOR_CONTEXTS: &[&str] = &[
    "# Context from my IDE setup",
    "# Files mentioned by the user",
];
/// How the heading begins that the request stands behind.
const REQUEST_HEADING: &str = "## My request";

/// How many arguments a command may have. With more of them it reads like a prompt, and may
/// be one: `/login returns 500, find out why`.
const ARGUMENTS_MAX: usize = 2;

/// How many elements before and behind a prompt are passed over.
const ELEMENTS_MAX: usize = 64;

/// Texts that one agent puts in place of prompts, besides the texts of all agents.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wrapping {
    /// Names of elements, as in [`ELEMENTS`].
    pub(crate) elements: &'static [&'static str],
    /// How whole texts begin, as in [`NOTICES`].
    pub(crate) notices: &'static [&'static str],
}

impl Wrapping {
    /// No texts of its own.
    pub(crate) const NONE: Self = Self {
        elements: &[],
        notices: &[],
    };

    /// The prompt in one part of a message; `None` if there is none.
    pub(crate) fn typed<'t>(&self, text: &'t str) -> Option<&'t str> {
        let mut text = text.trim();
        for _ in 0..ELEMENTS_MAX {
            let rest = self.behind_element(text);
            match rest.or_else(|| behind_heading(text)) {
                Some(rest) => text = rest.trim_start(),
                None => break,
            }
        }
        for _ in 0..ELEMENTS_MAX {
            match self.before_element(text) {
                Some(rest) => text = rest.trim_end(),
                None => break,
            }
        }
        let mut notices = NOTICES.iter().chain(self.notices);
        let is_notice =
            |start: &&str| text.starts_with(start) && (!start.ends_with('>') || text == *start);
        let is_typed = !text.is_empty() && !notices.any(is_notice);
        is_typed.then_some(text)
    }

    /// The prompt in the parts of a message.
    pub(crate) fn typed_in<'t>(&self, parts: impl IntoIterator<Item = &'t str>) -> Option<String> {
        let typed = parts.into_iter().filter_map(|part| self.typed(part));
        let typed: Vec<&str> = typed.collect();
        (!typed.is_empty()).then(|| typed.join("\n"))
    }

    fn is_element(&self, name: &str) -> bool {
        ELEMENTS.iter().chain(self.elements).any(|known| {
            let is_family = known.ends_with(['-', '_']);
            *known == name || (is_family && name.starts_with(known))
        })
    }

    /// The text behind the element at its start. An element without an end is cut off, and
    /// nothing is behind it. The content may quote the element's own end, or have elements of
    /// the same name: agents write nothing on the line behind the real end.
    fn behind_element<'t>(&self, text: &'t str) -> Option<&'t str> {
        let name = element_name(text.strip_prefix('<')?);
        if !self.is_element(name) {
            return None;
        }
        let mut open: isize = 0;
        let mut best: Option<((bool, bool), &str)> = None;
        for (at, tag) in tags(text, name) {
            if tag == Tag::Start {
                if open <= 0 && best.is_some() {
                    break;
                }
                open += 1;
                continue;
            }
            open -= 1;
            let behind = text.get(at..).and_then(|end| end.split_once('>'));
            let behind = behind.map_or("", |(_, rest)| rest);
            let line = behind.trim_start_matches([' ', '\t', '\r']);
            let is_within_line = !line.is_empty() && !line.starts_with(['\n', '<']);
            let doubts = (is_within_line, open > 0);
            if best.is_none_or(|(least, _)| doubts < least) {
                best = Some((doubts, behind));
            }
            if doubts == (false, false) {
                break;
            }
        }
        Some(best.map_or("", |(_, behind)| behind))
    }

    /// The text before the element that it ends with.
    fn before_element<'t>(&self, text: &'t str) -> Option<&'t str> {
        let (_, end) = text.strip_suffix('>')?.rsplit_once("</")?;
        let name = element_name(end);
        if !self.is_element(name) {
            return None;
        }
        let tags: Vec<(usize, Tag)> = tags(text, name).collect();
        let mut open: isize = 0;
        let balanced = tags.iter().rfind(|(_, tag)| {
            open += if *tag == Tag::End { 1 } else { -1 };
            open == 0
        });
        let last_start = || tags.iter().rfind(|(_, tag)| *tag == Tag::Start);
        text.get(..balanced.or_else(last_start)?.0)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tag {
    Start,
    End,
}

/// The tags of one name, with where each begins.
fn tags<'t>(text: &'t str, name: &'t str) -> impl Iterator<Item = (usize, Tag)> + 't {
    text.match_indices('<').filter_map(move |(at, _)| {
        let behind = text.get(at + 1..)?;
        let (tag, behind) = match behind.strip_prefix('/') {
            Some(behind) => (Tag::End, behind),
            None => (Tag::Start, behind),
        };
        (element_name(behind) == name).then_some((at, tag))
    })
}

fn element_name(text: &str) -> &str {
    let is_in_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let end = text.find(|c| !is_in_name(c)).unwrap_or(text.len());
    text.get(..end).unwrap_or_default()
}

/// The request behind an editor's context; nothing if there is no request.
fn behind_heading(text: &str) -> Option<&str> {
    let mut contexts = EDITOR_CONTEXTS.iter();
    if !contexts.any(|context| text.starts_with(context)) {
        return None;
    }
    let heading = format!("\n{REQUEST_HEADING}");
    let behind = text.split_once(&heading).map_or("", |(_, rest)| rest);
    // To the end of the heading's own line, or its colon, if the request follows on it.
    let (line, rest) = behind.split_once('\n').unwrap_or((behind, ""));
    match line.split_once(':') {
        Some((_, request)) if !request.trim().is_empty() => {
            behind.split_once(':').map(|(_, rest)| rest)
        }
        _ => Some(rest),
    }
}

/// The command that a person typed with arguments: `/review the parser`. A command without
/// arguments is no useful title.
pub(crate) fn command_in(text: &str) -> Option<String> {
    let text = text.trim();
    let (name, arguments) = match text.starts_with("<command-") {
        true => (
            content(text, "command-name")?,
            content(text, "command-args")?,
        ),
        false => text.split_once(char::is_whitespace)?,
    };
    let name = name.trim().trim_start_matches('/');
    let is_name = !name.is_empty() && !name.contains(['/', '<']);
    let is_command = text.starts_with(['/', '<']) && is_name && !arguments.trim().is_empty();
    is_command.then(|| format!("/{name} {}", arguments.trim()))
}

fn content<'t>(text: &'t str, element: &str) -> Option<&'t str> {
    let (_, rest) = text.split_once(&format!("<{element}>"))?;
    Some(rest.split_once(&format!("</{element}>"))?.0)
}

/// The title from a conversation's own text: the first prompt, or, if none is near, a
/// command with arguments.
#[derive(Debug, Default)]
pub(crate) struct FirstWords {
    prompt: Option<String>,
    command: Option<String>,
}

impl FirstWords {
    /// Adds a message of the person; earlier messages have been added before.
    pub(crate) fn add<'t>(
        &mut self,
        parts: impl IntoIterator<Item = &'t str>,
        wrapping: &Wrapping,
    ) {
        if self.prompt.is_some() {
            return;
        }
        let parts: Vec<&str> = parts.into_iter().collect();
        if self.command.is_none() {
            let command = parts.iter().find_map(|part| command_in(part));
            self.command = command.and_then(|command| one_line(&command));
        }
        let typed = parts.iter().filter(|part| !is_command(part));
        let typed = wrapping.typed_in(typed.copied());
        self.prompt = typed.and_then(|text| one_line(&text));
    }

    /// The first prompt is known.
    pub(crate) const fn has_prompt(&self) -> bool {
        self.prompt.is_some()
    }

    /// The first prompt, else a command.
    pub(crate) fn title(self) -> Option<String> {
        self.prompt.or(self.command)
    }
}

/// A command of the agent's own, alone or with few arguments: `/clear`, `/review the parser`.
/// A path is none.
pub(crate) fn is_command(text: &str) -> bool {
    let mut words = text.split_whitespace();
    let name = words.next().and_then(|word| word.strip_prefix('/'));
    name.is_some_and(is_command_name) && words.count() <= ARGUMENTS_MAX
}

/// It may be the name of a command: no path, and no word of a sentence with its stop.
fn is_command_name(name: &str) -> bool {
    let is_in_name = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | ':' | '.');
    name.chars().all(is_in_name) && name.ends_with(char::is_alphanumeric)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: Wrapping = Wrapping {
        elements: &["permissions"],
        notices: &["# AGENTS.md instructions", "</image>"],
    };

    #[track_caller]
    fn check(text: &str, right: Option<&str>) {
        assert_eq!(OWN.typed(text), right, "{text}");
    }

    #[test]
    fn what_agents_editors_and_hooks_write_is_no_prompt() {
        for text in [
            "",
            " \n",
            "<ide_opened_file>The user opened a.rs</ide_opened_file>",
            "<ide_selection>x",
            "<teammate-message teammate_id=\"a\" color=\"blue\">hello</teammate-message>",
            "<subagent_notification>\n{}\n</subagent_notification>",
            "<permissions instructions>x</permissions instructions>",
            "<system-reminder>\nx\n</system-reminder>\n<system-reminder>y</system-reminder>",
            "Operation stopped by hook: no",
            "[Request interrupted by user for tool use]",
            "# AGENTS.md instructions for /w/app",
            "</image>",
            "# Context from my IDE setup:\n\n## Active file: a.rs\n",
        ] {
            check(text, None);
        }
    }

    #[test]
    fn the_prompt_stands_behind_what_is_none_or_before_it() {
        check("<ide_selection>a</ide_selection>\n\nfix it", Some("fix it"));
        check(
            "fix it\n<system-reminder>b</system-reminder>",
            Some("fix it"),
        );
        let ide = "# Context from my IDE setup:\n\n## Open tabs:\n- a.rs\n\n";
        check(
            &format!("{ide}## My request for Codex:\nfix it\n"),
            Some("fix it"),
        );
        check(
            &format!("{ide}## My request for Codex: fix\nit"),
            Some("fix\nit"),
        );
        check(&format!("{ide}## My request\nfix: it"), Some("fix: it"));
        check(
            &format!(
                "<permissions instructions>x</permissions instructions>{ide}## My request for Codex:\nfix it"
            ),
            Some("fix it"),
        );
    }

    #[test]
    fn what_a_person_typed_stays_as_it_is() {
        for text in [
            "fix it",
            "<div>why is this red?</div>",
            "<ideas> for a name",
            "explain <system-reminder> to me",
            "## My request",
            "/home/dev/a.rs is broken",
            "Caveat: it must stay fast",
            "</image> is missing",
        ] {
            check(text, Some(text));
        }
    }

    #[test]
    fn an_element_ends_at_its_own_end() {
        for element in [
            "<ide_selection>a \"</ide_selection>\" from a.rs</ide_selection>",
            "<ide_selection>see <ide_selection>a</ide_selection> there</ide_selection>",
            "<ide_selection>\n<ide_selection>\na\n</ide_selection>\nb\n</ide_selection>",
        ] {
            check(&format!("{element}\nfix\nit"), Some("fix\nit"));
            check(&format!("fix\nit\n{element}"), Some("fix\nit"));
        }
        let twice = "<ide_selection>a</ide_selection> fix it <ide_selection>b</ide_selection>";
        check(twice, Some("fix it"));
        let nested = "<ide_a>see <ide_a>b</ide_a> there</ide_a> fix it";
        check(nested, Some("fix it"));
    }

    #[test]
    fn what_is_too_long_for_a_command_is_a_prompt() {
        for text in ["/clear", "/review the parser", "/mcp:github.pull 7"] {
            assert!(is_command(text), "{text}");
        }
        for text in [
            "/login returns 500, find out why",
            "/etc is full, why?",
            "/login, please",
            "/home/dev/a.rs is broken",
            "/",
            "review it",
        ] {
            assert!(!is_command(text), "{text}");
        }
    }

    #[test]
    fn a_command_counts_with_its_arguments() {
        let tagged = "<command-message>review</command-message>\n<command-name>/review</command-name>\n<command-args>the parser</command-args>";
        assert_eq!(command_in(tagged).as_deref(), Some("/review the parser"));
        assert_eq!(command_in("/review a\nb").as_deref(), Some("/review a\nb"));
        for other in [
            "/clear",
            "/home/dev/a.rs is broken",
            "review it",
            "<command-name>/clear</command-name><command-args></command-args>",
            "<command-name>/clear</command-name>",
        ] {
            assert_eq!(command_in(other), None, "{other}");
        }
    }

    #[test]
    fn the_first_prompt_is_the_title_and_else_a_command() {
        let title = |messages: &[&str]| {
            let mut words = FirstWords::default();
            messages.iter().for_each(|text| words.add([*text], &OWN));
            words.title()
        };
        assert_eq!(
            title(&["/clear", "/review it"]).as_deref(),
            Some("/review it")
        );
        assert_eq!(title(&["/review it", "a\nb", "c"]).as_deref(), Some("a b"));
        assert_eq!(title(&["<ide_x>a</ide_x>", "/clear"]), None);
        let failure = "/login returns 500, find out why";
        assert_eq!(title(&[failure, "thanks"]).as_deref(), Some(failure));
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_looked_through(text in "[<>/a-c #:\n_-]{0,60}") {
            let typed = OWN.typed(&text);
            proptest::prop_assert!(typed.is_none_or(|typed| text.contains(typed)));
            command_in(&text);
        }
    }
}
