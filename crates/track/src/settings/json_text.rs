//! Where the parts of a JSON text are. Comments and commas at the end are allowed,
//! as agents allow them in their settings.

use std::ops::Range;

use super::SettingsError;

/// How deep values may lie in each other.
const DEPTH_MAX: usize = 128;

/// A value, and where it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Node {
    /// Where it is, in bytes.
    pub(super) span: Range<usize>,
    /// What it is.
    pub(super) kind: NodeKind,
}

/// What a value is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum NodeKind {
    /// An object: the members in their order.
    Object(Vec<Member>, Ending),
    /// An array: the values in their order.
    Array(Vec<Node>, Ending),
    /// A text.
    Text(String),
    /// A number, a truth value or null.
    Other,
}

/// A key and its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Member {
    /// The key.
    pub(super) key: String,
    /// Where key and value are.
    pub(super) span: Range<usize>,
    /// The value.
    pub(super) value: Node,
}

/// Where something may be added to an object or array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ending {
    /// Behind the last value and its comma, if it has one; or behind the bracket.
    pub(super) at: usize,
    /// A comma has to come first.
    pub(super) needs_comma: bool,
}

/// Finds the parts of a text that is one value.
pub(super) fn parse(text: &str) -> Result<Node, SettingsError> {
    let mut reader = Reader {
        text,
        bytes: text.as_bytes(),
        at: 0,
    };
    // Some editors put a byte order mark before everything.
    if text.starts_with('\u{feff}') {
        reader.at = '\u{feff}'.len_utf8();
    }
    let node = reader.value(0)?;
    reader.blanks();
    if reader.at < text.len() {
        return Err(reader.unexpected("the end"));
    }
    Ok(node)
}

struct Reader<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn unexpected(&self, expected: &str) -> SettingsError {
        let line = self.text[..self.at.min(self.text.len())]
            .matches('\n')
            .count()
            + 1;
        SettingsError(format!("line {line} is not {expected}"))
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn eat(&mut self, byte: u8) -> bool {
        let is_it = self.peek() == Some(byte);
        self.at += usize::from(is_it);
        is_it
    }

    /// Passes over blanks and comments.
    fn blanks(&mut self) {
        loop {
            let rest = &self.text[self.at..];
            let skipped = if rest.starts_with("//") {
                rest.find('\n').unwrap_or(rest.len())
            } else if rest.starts_with("/*") {
                rest.find("*/").map_or(rest.len(), |end| end + 2)
            } else {
                let is_blank = |c: char| matches!(c, ' ' | '\t' | '\r' | '\n');
                rest.find(|c| !is_blank(c)).unwrap_or(rest.len())
            };
            if skipped == 0 {
                return;
            }
            self.at += skipped;
        }
    }

    fn value(&mut self, depth: usize) -> Result<Node, SettingsError> {
        if depth > DEPTH_MAX {
            return Err(SettingsError(
                "its values lie too deep in each other".to_owned(),
            ));
        }
        self.blanks();
        let start = self.at;
        let kind = match self.peek() {
            Some(b'{') => self.object(depth)?,
            Some(b'[') => self.array(depth)?,
            Some(b'"') => NodeKind::Text(self.text_value()?),
            Some(byte) if byte.is_ascii_alphanumeric() || byte == b'-' => {
                let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || b"+-.".contains(byte);
                self.at += self.bytes[start..]
                    .iter()
                    .take_while(|byte| is_part(byte))
                    .count();
                NodeKind::Other
            }
            _ => return Err(self.unexpected("a value")),
        };
        Ok(Node {
            span: start..self.at,
            kind,
        })
    }

    fn object(&mut self, depth: usize) -> Result<NodeKind, SettingsError> {
        self.at += 1;
        let mut ending = Ending {
            at: self.at,
            needs_comma: false,
        };
        let mut members = Vec::new();
        loop {
            self.blanks();
            if self.eat(b'}') {
                return Ok(NodeKind::Object(members, ending));
            }
            if ending.needs_comma {
                return Err(self.unexpected("a comma or the end of an object"));
            }
            let start = self.at;
            if self.peek() != Some(b'"') {
                return Err(self.unexpected("a key"));
            }
            let key = self.text_value()?;
            self.blanks();
            if !self.eat(b':') {
                return Err(self.unexpected("a colon"));
            }
            let value = self.value(depth + 1)?;
            members.push(Member {
                key,
                span: start..self.at,
                value,
            });
            ending = self.behind_value();
        }
    }

    fn array(&mut self, depth: usize) -> Result<NodeKind, SettingsError> {
        self.at += 1;
        let mut ending = Ending {
            at: self.at,
            needs_comma: false,
        };
        let mut values = Vec::new();
        loop {
            self.blanks();
            if self.eat(b']') {
                return Ok(NodeKind::Array(values, ending));
            }
            if ending.needs_comma {
                return Err(self.unexpected("a comma or the end of an array"));
            }
            values.push(self.value(depth + 1)?);
            ending = self.behind_value();
        }
    }

    /// Reads the comma behind a value, if there is one.
    fn behind_value(&mut self) -> Ending {
        let at = self.at;
        self.blanks();
        if self.eat(b',') {
            Ending {
                at: self.at,
                needs_comma: false,
            }
        } else {
            Ending {
                at,
                needs_comma: true,
            }
        }
    }

    fn text_value(&mut self) -> Result<String, SettingsError> {
        let start = self.at;
        self.at += 1;
        loop {
            match self.peek() {
                Some(b'"') => break,
                Some(b'\\') => self.at += 2,
                Some(byte) if byte >= b' ' => self.at += 1,
                _ => return Err(self.unexpected("the end of a text")),
            }
        }
        self.at += 1;
        let quoted = self.text.get(start..self.at);
        let text = quoted.and_then(|quoted| serde_json::from_str(quoted).ok());
        text.ok_or_else(|| self.unexpected("a text"))
    }
}
