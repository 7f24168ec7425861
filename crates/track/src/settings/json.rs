//! Hooks in JSON: `{"hooks": {EVENT: [{"hooks": [{"type": "command", …}]}]}}`.

use std::ops::Range;

use super::json_text::{Ending, Member, Node, NodeKind, parse};
use super::{Insertion, SettingsError};

/// Where the events are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// In the object `hooks`.
    BelowHooks,
    /// In the root, unless that has an object `hooks`.
    Root,
}

/// How far each level is moved in.
const INDENT: &str = "  ";

pub(super) fn present(
    text: &str,
    place: Place,
    events: &[&str],
    command: &str,
) -> Result<Vec<String>, SettingsError> {
    if text.trim().is_empty() {
        return Ok(Vec::new());
    }
    let root = parse(text)?;
    let Some((hooks, _)) = hooks_of(&root, place)? else {
        return Ok(Vec::new());
    };
    let has_ours =
        |event: &&&str| last(hooks, event).is_some_and(|member| runs(&member.value, command));
    Ok(events
        .iter()
        .filter(has_ours)
        .map(|event| (*event).to_owned())
        .collect())
}

pub(super) fn insertions(
    text: &str,
    place: Place,
    events: &[&str],
    command: &str,
) -> Result<Vec<Insertion>, SettingsError> {
    if text.trim().is_empty() {
        let members: Vec<String> = events
            .iter()
            .map(|event| member(event, command, 2))
            .collect();
        let members = members.join(",\n");
        return Ok(vec![Insertion {
            at: text.len(),
            text: match place {
                Place::BelowHooks => {
                    format!("{{\n{INDENT}\"hooks\": {{\n{members}\n{INDENT}}}\n}}\n")
                }
                Place::Root => format!("{{\n{members}\n}}\n"),
            },
        }]);
    }
    let root = parse(text)?;
    let NodeKind::Object(_, ending) = &root.kind else {
        return Err(SettingsError("it is no JSON object".to_owned()));
    };
    let Some((hooks, hooks_ending)) = hooks_of(&root, place)? else {
        let members: Vec<String> = events
            .iter()
            .map(|event| member(event, command, 2))
            .collect();
        let members = members.join(",\n");
        let added = format!("{INDENT}\"hooks\": {{\n{members}\n{INDENT}}}");
        return Ok(vec![inserted(text, *ending, &added, "")]);
    };
    let mut found = Vec::new();
    let mut missing = Vec::new();
    for event in events {
        match last(hooks, event) {
            None => missing.push(member(event, command, 2)),
            Some(Member { value, .. }) => {
                let NodeKind::Array(_, ending) = &value.kind else {
                    return Err(SettingsError(format!("`hooks.{event}` is no array")));
                };
                found.push(inserted(
                    text,
                    *ending,
                    &group(command, 3),
                    &INDENT.repeat(2),
                ));
            }
        }
    }
    if !missing.is_empty() {
        found.push(inserted(text, hooks_ending, &missing.join(",\n"), INDENT));
    }
    Ok(found)
}

/// Adds to the end of an object or array: on lines of its own, and with the
/// bracket on one of its own where it was right behind the other bracket.
fn inserted(text: &str, ending: Ending, added: &str, indent: &str) -> Insertion {
    let comma = if ending.needs_comma { "," } else { "" };
    let is_bracket_next = text[ending.at..].starts_with(['}', ']']);
    let last = if is_bracket_next {
        format!("\n{indent}")
    } else {
        String::new()
    };
    Insertion {
        at: ending.at,
        text: format!("{comma}\n{added}{last}"),
    }
}

fn member(event: &str, command: &str, depth: usize) -> String {
    let indent = INDENT.repeat(depth);
    let group = group(command, depth + 1);
    format!("{indent}\"{event}\": [\n{group}\n{indent}]")
}

fn group(command: &str, depth: usize) -> String {
    let indent = INDENT.repeat(depth);
    let command = serde_json::Value::from(command);
    format!("{indent}{{ \"hooks\": [{{ \"type\": \"command\", \"command\": {command} }}] }}")
}

fn hooks_of(root: &Node, place: Place) -> Result<Option<(&[Member], Ending)>, SettingsError> {
    let NodeKind::Object(members, ending) = &root.kind else {
        return Err(SettingsError("it is no JSON object".to_owned()));
    };
    let hooks = last(members, "hooks");
    match (hooks.map(|hooks| &hooks.value.kind), place) {
        (Some(NodeKind::Object(members, ending)), _) => Ok(Some((members, *ending))),
        (_, Place::Root) => Ok(Some((members, *ending))),
        (None, Place::BelowHooks) => Ok(None),
        (Some(_), Place::BelowHooks) => Err(SettingsError("`hooks` is no object".to_owned())),
    }
}

/// The member with this key that counts: of several, agents read the last.
fn last<'a>(members: &'a [Member], key: &str) -> Option<&'a Member> {
    members.iter().rfind(|member| member.key == key)
}

/// A group of hooks one of which runs the command.
fn runs(node: &Node, command: &str) -> bool {
    match &node.kind {
        NodeKind::Array(values, _) => values.iter().any(|value| runs(value, command)),
        NodeKind::Object(members, _) => members.iter().any(|member| match &member.value.kind {
            NodeKind::Text(text) => member.key == "command" && text == command,
            _ => runs(&member.value, command),
        }),
        NodeKind::Text(_) | NodeKind::Other => false,
    }
}

/// Every command that hooks run.
pub(super) fn commands(text: &str, place: Place) -> Result<Vec<String>, SettingsError> {
    if text.trim().is_empty() {
        return Ok(Vec::new());
    }
    let root = parse(text)?;
    let mut found = Vec::new();
    for member in hooks_of(&root, place)?.map_or(&[][..], |(hooks, _)| hooks) {
        collect_commands(&member.value, &mut found);
    }
    Ok(found)
}

fn collect_commands(node: &Node, found: &mut Vec<String>) {
    match &node.kind {
        NodeKind::Array(values, _) => {
            values
                .iter()
                .for_each(|value| collect_commands(value, found));
        }
        NodeKind::Object(members, _) => {
            for member in members {
                match &member.value.kind {
                    NodeKind::Text(text) if member.key == "command" => found.push(text.clone()),
                    _ => collect_commands(&member.value, found),
                }
            }
        }
        NodeKind::Text(_) | NodeKind::Other => {}
    }
}

pub(super) fn without_command(
    text: &str,
    place: Place,
    command: &str,
) -> Result<String, SettingsError> {
    if text.trim().is_empty() {
        return Ok(text.to_owned());
    }
    let root = parse(text)?;
    let Some((hooks, _)) = hooks_of(&root, place)? else {
        return Ok(text.to_owned());
    };
    let mut removed: Vec<Range<usize>> = Vec::new();
    let mut emptied = Vec::new();
    for (at, member) in hooks.iter().enumerate() {
        let is_array = matches!(member.value.kind, NodeKind::Array(..));
        if is_array && is_ours(&member.value, command, &mut removed) {
            emptied.push(at);
        }
    }
    let spans: Vec<Range<usize>> = hooks.iter().map(|member| member.span.clone()).collect();
    let is_empty: Vec<bool> = (0..hooks.len()).map(|at| emptied.contains(&at)).collect();
    removed.extend(cuts(&spans, &is_empty));
    removed.sort_by_key(|range| range.start);
    let mut text = text.to_owned();
    for range in removed.into_iter().rev() {
        text.replace_range(range, "");
    }
    Ok(text)
}

/// Whether there is nothing in it but hooks that run the command. Otherwise these hooks are
/// added to what is cut: other hooks may stand in one group with them.
fn is_ours(node: &Node, command: &str, removed: &mut Vec<Range<usize>>) -> bool {
    match &node.kind {
        NodeKind::Array(values, _) => {
            let ours = values.iter().map(|value| is_ours(value, command, removed));
            let ours: Vec<bool> = ours.collect();
            let is_all_ours = !ours.is_empty() && ours.iter().all(|ours| *ours);
            if !is_all_ours {
                let spans: Vec<_> = values.iter().map(|value| value.span.clone()).collect();
                removed.extend(cuts(&spans, &ours));
            }
            is_all_ours
        }
        NodeKind::Object(members, _) => members.iter().any(|member| match &member.value.kind {
            NodeKind::Text(text) => member.key == "command" && text == command,
            _ => is_ours(&member.value, command, removed),
        }),
        NodeKind::Text(_) | NodeKind::Other => false,
    }
}

/// What to cut so that some of the values in a list go, each with one comma: with
/// what stands before it, or, where nothing is left before it, what stands behind.
fn cuts(spans: &[Range<usize>], goes: &[bool]) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut kept_before = false;
    for (at, span) in spans.iter().enumerate() {
        if !goes[at] {
            kept_before = true;
        } else if kept_before {
            found.push(spans[at - 1].end..span.end);
        } else {
            let end = spans.get(at + 1).map_or(span.end, |next| next.start);
            found.push(span.start..end);
        }
    }
    found
}
