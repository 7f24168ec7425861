//! Lines by a template: `{id} {state}`.

use std::borrow::Cow;
use std::io::{self, Write};
use std::str::FromStr;

use serde_json::Value;
use similar::get_close_matches;
use whosup_core::machine::Machine;
use whosup_core::reader::{Chosen, Form};
use whosup_core::sessions::session::Session;
use whosup_core::sidecar::SessionId;
use whosup_core::views::wire::{self, WireSession};

use super::count::Count;
use super::field::FIELDS;
use crate::cell::{Cells, NOTHING};
use crate::column::Column;
use crate::condition::{Wording, words_of};
use crate::shell::quoted;
use crate::short_id::ShortIds;
use crate::text;

/// How many fields are suggested for an unknown field.
const SUGGESTIONS_MAX: usize = 5;
/// The least similarity of a suggested field, from 0 to 1.
const SIMILARITY_MIN: f32 = 0.6;

/// The argument of `--format`.
#[derive(Debug, Clone)]
pub(super) enum Format {
    /// The list of fields.
    Help,
    /// Lines by a template.
    Lines(Template),
}

/// A piece of a template.
#[derive(Debug, Clone)]
pub(super) struct Template(Vec<Piece>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Text(String),
    /// The ID, in a form that commands accept. It is known only when the list is complete.
    Id,
    Column(Column),
    /// A field of the JSON.
    Field(&'static str),
}

impl Template {
    /// A template of only the ID.
    pub(super) fn ids() -> Self {
        Self(vec![Piece::Id])
    }

    /// The columns that need the same counts or measurements as the template.
    pub(super) fn columns(&self) -> Vec<Column> {
        let columns = self.0.iter().flat_map(|piece| match piece {
            Piece::Column(column) => vec![*column],
            Piece::Field(name) if name.starts_with("usage.") => vec![Column::Tokens],
            Piece::Field(name) if name.starts_with("resources.") => vec![Column::Cpu, Column::Io],
            Piece::Text(_) | Piece::Id | Piece::Field(_) => Vec::new(),
        });
        columns.collect()
    }

    fn has_fields(&self) -> bool {
        let is_field = |piece: &Piece| matches!(piece, Piece::Field(_));
        self.0.iter().any(is_field)
    }
}

impl FromStr for Format {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "help" {
            return Ok(Self::Help);
        }
        parse(text).map(Template).map(Self::Lines)
    }
}

fn parse(text: &str) -> Result<Vec<Piece>, String> {
    let mut pieces = Vec::new();
    let mut plain = String::new();
    let mut rest = text;
    while let Some(character) = rest.chars().next() {
        rest = rest.get(character.len_utf8()..).unwrap_or_default();
        let is_double = rest.starts_with(character);
        match character {
            '{' | '}' if is_double => {
                plain.push(character);
                rest = rest.get(1..).unwrap_or_default();
            }
            '{' => {
                let Some((name, after)) = rest.split_once('}') else {
                    return Err(format!("`{{{rest}` has no `}}`; `{{{{` stands for a brace"));
                };
                rest = after;
                pieces.push(Piece::Text(std::mem::take(&mut plain)));
                pieces.push(piece_of(name)?);
            }
            '}' => return Err("`}` has no `{`; `}}` stands for a brace".to_owned()),
            '\\' => {
                plain.push(match rest.bytes().next() {
                    Some(b't') => '\t',
                    Some(b'n') => '\n',
                    Some(b'\\') => '\\',
                    _ => return Err("after `\\` comes `t`, `n` or another `\\`".to_owned()),
                });
                rest = rest.get(1..).unwrap_or_default();
            }
            _ => plain.push(character),
        }
    }
    pieces.push(Piece::Text(plain));
    pieces.retain(|piece| *piece != Piece::Text(String::new()));
    Ok(pieces)
}

fn piece_of(name: &str) -> Result<Piece, String> {
    if name == Column::Id.name() {
        return Ok(Piece::Id);
    }
    if let Some((field, _)) = FIELDS.iter().find(|(field, _)| *field == name) {
        return Ok(Piece::Field(field));
    }
    Column::from_name(name)
        .map(Piece::Column)
        .ok_or_else(|| unknown(name))
}

/// The error for an unknown field, with similar names.
fn unknown(name: &str) -> String {
    let fields = FIELDS.iter().map(|(field, _)| *field);
    let names: Vec<&str> = fields.chain(Column::ALL.map(Column::name)).collect();
    // `executable` matches `owner.executable`.
    let parts = names.iter().copied();
    let mut near: Vec<&str> = parts
        .filter(|known| known.rsplit('.').next() == Some(name))
        .collect();
    let similar = get_close_matches(name, &names, SUGGESTIONS_MAX, SIMILARITY_MIN);
    near.extend(similar.into_iter().filter(|known| !known.ends_with(name)));
    let near = near.iter().take(SUGGESTIONS_MAX);
    let near: Vec<String> = near.map(|known| format!("`{known}`")).collect();
    let hint = match near.as_slice() {
        [] => String::new(),
        near => format!("did you mean {}? ", near.join(", ")),
    };
    format!("no field is called `{name}`; {hint}`--format help` lists the fields")
}

/// Prints the fields.
pub(super) fn write_help(out: &mut dyn Write) -> io::Result<()> {
    let own = Column::ALL.iter().filter(|column| {
        let is_field = FIELDS.iter().any(|(field, _)| *field == column.name());
        !is_field
    });
    let own: Vec<(&str, &str)> = own.map(|column| (column.name(), column.help())).collect();
    let names = FIELDS.iter().chain(&own).map(|(name, _)| name.len());
    let width = names.max().unwrap_or_default();
    writeln!(out, "As in the table:")?;
    for (name, help) in &own {
        writeln!(out, "  {name:width$}  {help}")?;
    }
    writeln!(out, "\nAs in the JSON:")?;
    for (name, help) in FIELDS {
        writeln!(out, "  {name:width$}  {help}")?;
    }
    writeln!(
        out,
        "\nA missing value is `{NOTHING}`. `\\t` is a tab, `\\n` a new line, `{{{{` and `}}}}` are braces."
    )
}

/// The lines of sessions.
pub(super) struct Lines<'a> {
    pub(super) machine: &'a Machine,
    pub(super) cells: Cells<'a>,
    pub(super) count: Count<'a>,
    pub(super) template: &'a Template,
}

impl Form for Lines<'_> {
    /// The text of each piece; `None` if it is the same for all, or not known yet.
    type Row = Vec<Option<String>>;
    const NEEDS_IDS: bool = true;

    fn prepare(&mut self, session: &mut Session) {
        self.count.add_to(session);
    }

    fn row(&mut self, session: &Session) -> Self::Row {
        let json = self.template.has_fields().then(|| {
            let wire: WireSession<Cow<'_, str>> = wire::session(self.machine, session);
            // These values are valid JSON, since they are written as such elsewhere.
            serde_json::to_value(wire).unwrap_or_default()
        });
        let text = |piece: &Piece| match piece {
            Piece::Text(_) | Piece::Id => None,
            Piece::Column(Column::State) => Some(words_of(session, Wording::Full)),
            Piece::Column(column) => Some(self.cells.text_of(*column, session)),
            Piece::Field(name) => Some(value_of(json.as_ref()?, name)),
        };
        self.template.0.iter().map(text).collect()
    }
}

/// A value for a person or a script.
fn value_of(json: &Value, name: &str) -> String {
    let value = name.split('.').try_fold(json, |value, key| value.get(key));
    let text = match value {
        None | Some(Value::Null) => NOTHING.to_owned(),
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(words)) => {
            let words = words.iter().filter_map(Value::as_str).map(quoted);
            words.collect::<Vec<_>>().join(" ")
        }
        Some(value) => value.to_string(),
    };
    text::visible(&text)
}

/// Prints the lines.
pub(super) fn write(
    out: &mut dyn Write,
    template: &Template,
    chosen: Chosen<Vec<Option<String>>>,
) -> io::Result<()> {
    let ids = ShortIds::of_ids(chosen.ids);
    for shown in chosen.shown {
        for (piece, text) in template.0.iter().zip(&shown.row) {
            let text = match (piece, text) {
                (Piece::Text(text), _) | (_, Some(text)) => text.clone(),
                (_, None) => typed(&ids, shown.agent().as_str(), shown.id()),
            };
            out.write_all(text.as_bytes())?;
        }
        writeln!(out)?;
    }
    Ok(())
}

/// The whole ID, with its agent if several sessions have the ID. A prefix before a colon
/// would be read as an agent.
fn typed(ids: &ShortIds, agent: &str, id: &SessionId) -> String {
    let shown = text::visible(id.as_str());
    if ids.is_shared(id) || shown.contains(':') {
        format!("{agent}:{shown}")
    } else {
        shown
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use serde_json::Value;

    use super::{Column, FIELDS, Piece, parse};

    #[test]
    fn a_template_has_texts_and_fields() {
        let text = |text: &str| Piece::Text(text.to_owned());
        let expected = [
            text("a{"),
            Piece::Id,
            text("}\t\\"),
            Piece::Field("owner.pid"),
            Piece::Column(Column::Age),
            text("\n"),
        ];
        let parsed = parse(r"a{{{id}}}\t\\{owner.pid}{age}\n");
        assert_eq!(parsed.unwrap(), expected);
        assert_eq!(parse("").unwrap(), []);
    }

    #[test]
    fn what_is_wrong_with_a_template_is_said() {
        for (template, said) in [
            ("{", "`}`"),
            ("{id", "`{id`"),
            ("id}", "`{`"),
            ("{}", "``"),
            (r"\x", r"`\`"),
            ("{sesion_id}", "`session_id`"),
            ("{executable}", "`owner.executable`"),
            ("{pane.labl}", "`--format help`"),
            ("{pdi}", "`pid`"),
        ] {
            let error = parse(template).unwrap_err();
            assert!(error.contains(said), "{template}: {error}");
        }
    }

    /// The fields of the schema with a single value.
    fn fields_of(schema: &Value, name: &str, before: &str, fields: &mut BTreeSet<String>) {
        let properties = schema["$defs"][name]["properties"].as_object();
        for (key, property) in properties.unwrap() {
            let alternatives = property["anyOf"].as_array().into_iter().flatten();
            let mut references = alternatives
                .chain([property])
                .filter_map(|one| one["$ref"].as_str());
            let reference = references.next().and_then(|one| one.rsplit('/').next());
            let below = reference.filter(|one| schema["$defs"][one]["type"] == "object");
            let is_list = property["type"] == "array" && key != "argv";
            let is_base64 = key.ends_with("_bytes") && property["type"] == "string";
            let is_nested = ["env", "env_bytes", "outer"].contains(&key.as_str());
            match below {
                _ if is_list || is_base64 || is_nested => {}
                Some(below) => fields_of(schema, below, &format!("{before}{key}."), fields),
                None => {
                    fields.insert(format!("{before}{key}"));
                }
            }
        }
    }

    #[test]
    fn the_fields_are_those_of_the_schema() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../schema");
        let schema = std::fs::read(path.join("common.v1.schema.json")).unwrap();
        let schema: Value = serde_json::from_slice(&schema).unwrap();
        let mut expected = BTreeSet::new();
        fields_of(&schema, "session", "", &mut expected);
        let fields: BTreeSet<String> = FIELDS.iter().map(|(name, _)| (*name).to_owned()).collect();
        assert_eq!(fields, expected);
    }
}
