//! The format for `tmux list-panes`, and the parser of its output.

use std::collections::HashMap;
use std::path::PathBuf;

use whosup_process::Pid;

/// How many panes of one server are kept.
pub(super) const PANES_MAX: usize = 10_000;

/// One line per pane: fields without spaces first, free text last.
///
/// A title has no line breaks: tmux accepts none from programs and, since 2.6, none from
/// `select-pane -T`. Since 3.8 a session's name may contain `:`; from 3.2 on its length is
/// printed before it, earlier versions leave that field empty. (Read in the sources of tmux 2.1
/// to 3.8, 2026-11.)
pub(super) const FORMAT: &str = "#{pane_id} #{pane_pid} #{pane_dead} #{pid} #{pane_tty} \
                                 #{pane_index} #{n:session_name} #{n:window_name} \
                                 #{session_name}:#{window_name}:#{pane_title}";

/// One line per client, which shows panes in its terminal.
pub(super) const CLIENT_FORMAT: &str = "client #{client_pid} #{session_name}";

/// How many fields [`FORMAT`] has; the last one is the rest of the line.
const FIELDS: usize = 9;

/// The output of one server.
#[derive(Debug, PartialEq, Eq, Default)]
pub(super) struct Listing {
    /// Its panes, each once.
    pub(super) panes: Vec<Row>,
    /// Unreadable lines.
    pub(super) bad: Vec<BadLine>,
    /// The server's clients, and the tmux session that each shows.
    pub(super) clients: Vec<(Pid, String)>,
}

/// One pane, as listed by a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Row {
    /// Its id, `%3`.
    pub(super) pane: String,
    /// The process that was started in it; `None` for an empty pane.
    pub(super) pid: Option<Pid>,
    /// That process has exited and the pane is kept.
    pub(super) is_dead: bool,
    /// The server's own idea of its PID.
    pub(super) server: Pid,
    /// The path of its terminal; `None` for an empty pane.
    pub(super) tty_path: Option<PathBuf>,
    /// The name of the tmux session around it.
    pub(super) session: String,
    /// Further tmux sessions that its window is linked into.
    pub(super) also_in: Vec<String>,
    /// The name of the window around it.
    pub(super) window: String,
    /// Its place in that window.
    pub(super) index: String,
    /// Its title.
    pub(super) title: String,
}

/// An unreadable line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BadLine {
    /// Its number, from 1.
    pub(super) number: usize,
    /// What is wrong with it.
    pub(super) reason: String,
}

/// Parses the output of a server: bad lines do not affect the others.
///
/// A window that is linked into several tmux sessions is printed once for
/// each; its panes are kept once, with the first.
pub(super) fn parse_listing(output: &[u8]) -> Listing {
    let mut listing = Listing::default();
    let mut listed = HashMap::new();
    let text = output.strip_suffix(b"\n").unwrap_or(output);
    if text.is_empty() {
        return listing;
    }
    for (at, line) in text.split(|byte| *byte == b'\n').enumerate() {
        let bad = |reason: String| BadLine {
            number: at.saturating_add(1),
            reason,
        };
        if at >= PANES_MAX {
            let reason = format!("more than {PANES_MAX} panes");
            listing.bad.push(bad(reason));
            break;
        }
        if let Some(client) = line.strip_prefix(b"client ") {
            listing.clients.extend(parse_client(client));
            continue;
        }
        match parse_row(line) {
            Err(reason) => listing.bad.push(bad(reason)),
            Ok(row) => match find_listed(&listing.panes, &listed, &row) {
                Ok(Some(at)) => {
                    let known = listing.panes.get_mut(at);
                    known
                        .into_iter()
                        .for_each(|known| known.also_in.push(row.session.clone()));
                }
                Ok(None) => {
                    listed.insert(row.pane.clone(), listing.panes.len());
                    listing.panes.push(row);
                }
                Err(reason) => listing.bad.push(bad(reason)),
            },
        }
    }
    listing
}

/// Finds the place of the pane that this line reports once more; `listed` has the places by
/// pane id.
///
/// # Errors
///
/// Why this line contradicts the others.
fn find_listed(
    panes: &[Row],
    listed: &HashMap<String, usize>,
    row: &Row,
) -> Result<Option<usize>, String> {
    if panes
        .first()
        .is_some_and(|first| first.server != row.server)
    {
        return Err("it names another server".to_owned());
    }
    let at = listed.get(&row.pane).copied();
    match at.and_then(|at| panes.get(at)) {
        Some(found) if found.pid != row.pid || found.tty_path != row.tty_path => Err(format!(
            "it contradicts another line on pane `{}`",
            row.pane
        )),
        _ => Ok(at),
    }
}

/// Parses a client: its PID and the name of the tmux session that it shows.
fn parse_client(fields: &[u8]) -> Option<(Pid, String)> {
    let at = fields.iter().position(|byte| *byte == b' ')?;
    let (pid, session) = (fields.get(..at)?, fields.get(at.checked_add(1)?..)?);
    let pid = parse_pid("client_pid", pid).ok()??;
    Some((pid, lossy(session)))
}

fn parse_row(line: &[u8]) -> Result<Row, String> {
    let fields: Vec<&[u8]> = line.splitn(FIELDS, |byte| *byte == b' ').collect();
    let [
        pane,
        pid,
        is_dead,
        server,
        tty_path,
        index,
        session_bytes,
        window_bytes,
        text,
    ] = fields.as_slice()
    else {
        return Err(format!("{} of {FIELDS} fields", fields.len()));
    };
    let is_dead = match *is_dead {
        b"1" => true,
        b"0" | b"" => false,
        _ => return Err("`pane_dead` is not 0 or 1".to_owned()),
    };
    let (session, text) = split_name(session_bytes, text)
        .ok_or_else(|| "no `:` behind the name of the tmux session".to_owned())?;
    let (window, title) = split_name(window_bytes, text)
        .ok_or_else(|| "no `:` behind the name of the window".to_owned())?;
    Ok(Row {
        pane: parse_pane_id(pane).ok_or_else(|| "`pane_id` is not a pane id".to_owned())?,
        pid: parse_pid("pane_pid", pid)?,
        is_dead,
        server: parse_pid("pid", server)?.ok_or_else(|| "`pid` is not a process id".to_owned())?,
        tty_path: parse_tty_path(tty_path),
        session: lossy(session),
        also_in: Vec::new(),
        window: lossy(window),
        index: lossy(index),
        title: lossy(title),
    })
}

/// Parses a pane id: a percent sign and a number.
fn parse_pane_id(field: &[u8]) -> Option<String> {
    let digits = field.strip_prefix(b"%")?;
    let is_number = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    is_number.then(|| lossy(field))
}

/// Parses a PID: `None` if the number names no process, as in a pane without a program.
fn parse_pid(name: &str, field: &[u8]) -> Result<Option<Pid>, String> {
    let number: Option<i64> = std::str::from_utf8(field)
        .ok()
        .and_then(|text| text.parse().ok());
    match number {
        Some(number) => Ok(Pid::new(number).ok()),
        None if field.is_empty() => Ok(None),
        None => Err(format!("`{name}` is not an integer")),
    }
}

/// Takes the path of a terminal: a device's, or none.
fn parse_tty_path(field: &[u8]) -> Option<PathBuf> {
    let path = std::str::from_utf8(field).ok()?;
    path.starts_with("/dev/").then(|| PathBuf::from(path))
}

/// Splits off a name of so many bytes.
fn split_name<'a>(name_bytes: &[u8], text: &'a [u8]) -> Option<(&'a [u8], &'a [u8])> {
    let stated = std::str::from_utf8(name_bytes)
        .ok()
        .and_then(|length| length.parse::<usize>().ok())
        .filter(|length| text.get(*length) == Some(&b':'));
    let length = match stated {
        Some(length) => length,
        None => text.iter().position(|byte| *byte == b':')?,
    };
    let title = text.get(length.checked_add(1)?..)?;
    Some((text.get(..length)?, title))
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests;
