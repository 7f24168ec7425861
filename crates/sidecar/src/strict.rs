//! JSON objects read without any coercion.

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde_json::{Map, Value};
use whosup_process::Pid;

use crate::field_error::FieldError;
use crate::json::{self, FEW_FIELDS, JsonError, Lengths, parse_object, type_name};
use crate::shown::shown;

/// A JSON object whose fields are asked for by key and type.
///
/// Nothing is converted: a bool is no integer, nor is `1.0` or `"1"`. `null`
/// is the absence of an optional field and an error in a required one. A key
/// that the object has twice is an error when it is asked for (in nested
/// objects that is not noticed: there the last value counts). Keys that are
/// never asked for are ignored.
///
/// ```
/// use whosup_sidecar::StrictObject;
///
/// let object = StrictObject::parse(br#"{"pid": true, "cwd": "/w", "data": {"n": 7}}"#)?;
/// assert_eq!(object.string("cwd")?, "/w");
/// assert_eq!(object.object("data")?.integer("n")?, 7);
/// assert_eq!(object.opt_string("title")?, None);
/// assert_eq!(
///     object.pid("pid").unwrap_err().to_string(),
///     "`pid` is not an integer: found the bool `true`"
/// );
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct StrictObject<'a> {
    fields: Fields<'a>,
    repeated: BTreeSet<String>,
    /// The keys that lead here from the outermost object, each with a dot after it.
    prefix: String,
}

#[derive(Debug, Clone)]
enum Fields<'a> {
    /// In the order of their keys, unless they are few.
    Parsed(Vec<(Cow<'a, str>, json::Field<'a>)>, Lengths),
    /// Of a value that was parsed already.
    Map(&'a Map<String, Value>),
}

/// The value of a field.
#[derive(Clone, Copy)]
enum Field<'a> {
    Text(&'a str),
    Other(&'a Value),
}

impl<'a> Field<'a> {
    fn parsed(field: &'a json::Field<'_>) -> Self {
        match field {
            json::Field::Text(text) => Self::Text(text),
            json::Field::Other(value) => Self::Other(value),
        }
    }

    fn value(value: &'a Value) -> Self {
        match value {
            Value::String(text) => Self::Text(text),
            other => Self::Other(other),
        }
    }

    const fn text(self) -> Option<&'a str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Other(_) => None,
        }
    }

    const fn other(self) -> Option<&'a Value> {
        match self {
            Self::Text(_) => None,
            Self::Other(value) => Some(value),
        }
    }

    const fn is_null(self) -> bool {
        matches!(self, Self::Other(Value::Null))
    }
}

/// A process id in a file, where 0 may mean that there is no process any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SidecarPid {
    /// `0`: released, no process serves the session.
    Released,
    /// This process claims to serve it.
    Process(Pid),
}

impl<'a> StrictObject<'a> {
    /// Parses bytes that must be one JSON object. The caller bounds their number. Half a
    /// surrogate pair in an escape is read as U+FFFD, as [`parse_json`](crate::parse_json) does.
    ///
    /// # Errors
    ///
    /// [`JsonError`] if they are no JSON object.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, JsonError> {
        let parsed = parse_object(bytes)?;
        Ok(Self {
            fields: Fields::Parsed(parsed.fields, parsed.lengths),
            repeated: parsed.repeated,
            prefix: String::new(),
        })
    }

    /// Reads a JSON value that was parsed already.
    ///
    /// # Errors
    ///
    /// [`JsonError::NotAnObject`] if it is something else.
    pub fn from_value(value: &'a Value) -> Result<Self, JsonError> {
        let Value::Object(fields) = value else {
            let found = type_name(value);
            return Err(JsonError::NotAnObject { found });
        };
        Ok(Self::nested(fields, String::new()))
    }

    fn nested(fields: &'a Map<String, Value>, prefix: String) -> Self {
        Self {
            fields: Fields::Map(fields),
            repeated: BTreeSet::new(),
            prefix,
        }
    }

    /// The keys of the object.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        let (parsed, map) = match &self.fields {
            Fields::Parsed(fields, _) => (Some(fields), None),
            Fields::Map(fields) => (None, Some(*fields)),
        };
        let parsed = parsed.into_iter().flatten().map(|(key, _)| &**key);
        parsed.chain(
            map.into_iter()
                .flat_map(|map| map.keys().map(String::as_str)),
        )
    }

    /// The value of a field, whatever its type; `None` if the object has no
    /// such field or the value is `null`.
    ///
    /// # Errors
    ///
    /// [`FieldError::Repeated`] if it has more than one.
    pub fn opt_value(&self, key: &str) -> Result<Option<Cow<'_, Value>>, FieldError> {
        let field = self.opt_field(key)?;
        Ok(field.map(|field| match field {
            Field::Text(text) => Cow::Owned(text.into()),
            Field::Other(value) => Cow::Borrowed(value),
        }))
    }

    /// Returns whether a field is a string.
    pub(crate) fn is_string(&self, key: &str) -> Result<bool, FieldError> {
        Ok(matches!(self.opt_field(key)?, Some(Field::Text(_))))
    }

    fn opt_field(&self, key: &str) -> Result<Option<Field<'_>>, FieldError> {
        let field = self.any_field(key)?;
        Ok(field.filter(|field| !field.is_null()))
    }

    fn any_field(&self, key: &str) -> Result<Option<Field<'_>>, FieldError> {
        if !self.repeated.is_empty() && self.repeated.contains(key) {
            let key = self.path_of(key);
            return Err(FieldError::Repeated { key });
        }
        Ok(match &self.fields {
            Fields::Parsed(_, lengths) if !lengths.may_have(key) => None,
            // Few are compared faster one by one: most differ in length.
            Fields::Parsed(fields, _) if fields.len() <= FEW_FIELDS => {
                let mut fields = fields.iter();
                fields
                    .find(|(name, _)| **name == *key)
                    .map(|(_, field)| Field::parsed(field))
            }
            Fields::Parsed(fields, _) => {
                let at = fields.binary_search_by(|(name, _)| (**name).cmp(key));
                at.ok()
                    .and_then(|at| fields.get(at))
                    .map(|(_, field)| Field::parsed(field))
            }
            Fields::Map(fields) => fields.get(key).map(Field::value),
        })
    }

    fn path_of(&self, key: &str) -> String {
        format!("{}{}", self.prefix, shown(key))
    }

    fn wrong_type(&self, key: &str, expected: &'static str, found: Field<'_>) -> FieldError {
        FieldError::WrongType {
            key: self.path_of(key),
            expected,
            found: described(found),
        }
    }

    /// The error for a field with the right type and an impossible value.
    ///
    /// `expected` completes "`key` is not …".
    #[must_use]
    pub fn out_of_range(&self, key: &str, expected: &'static str, found: &str) -> FieldError {
        FieldError::OutOfRange {
            key: self.path_of(key),
            expected,
            found: shown(found),
        }
    }

    /// Reads a field that may be absent or `null`.
    fn opt<'s, T>(
        &'s self,
        key: &str,
        expected: &'static str,
        read: impl FnOnce(Field<'s>) -> Option<T>,
    ) -> Result<Option<T>, FieldError> {
        let Some(value) = self.opt_field(key)? else {
            return Ok(None);
        };
        let wrong_type = || self.wrong_type(key, expected, value);
        read(value).map(Some).ok_or_else(wrong_type)
    }

    /// Reads a field that must be there.
    fn required<'s, T>(
        &'s self,
        key: &str,
        expected: &'static str,
        read: impl FnOnce(Field<'s>) -> Option<T>,
    ) -> Result<T, FieldError> {
        let missing = || FieldError::Missing {
            key: self.path_of(key),
        };
        let value = self.any_field(key)?.ok_or_else(missing)?;
        read(value).ok_or_else(|| self.wrong_type(key, expected, value))
    }

    /// A text.
    ///
    /// # Errors
    ///
    /// [`FieldError`] if it is missing or no string.
    pub fn string(&self, key: &str) -> Result<&str, FieldError> {
        self.required(key, "a string", Field::text)
    }

    /// A text, if there is one.
    ///
    /// # Errors
    ///
    /// [`FieldError`] if it is no string.
    pub fn opt_string(&self, key: &str) -> Result<Option<&str>, FieldError> {
        self.opt(key, "a string", Field::text)
    }

    /// A whole number.
    ///
    /// # Errors
    ///
    /// [`FieldError`] if it is missing, no integer, or beyond 64 bits.
    pub fn integer(&self, key: &str) -> Result<i64, FieldError> {
        let integer = self.required(key, INTEGER, integer)?;
        self.in_64_bits(key, integer)
    }

    /// A whole number, if there is one.
    ///
    /// # Errors
    ///
    /// [`FieldError`] if it is no integer or beyond 64 bits.
    pub fn opt_integer(&self, key: &str) -> Result<Option<i64>, FieldError> {
        let integer = self.opt(key, INTEGER, integer)?;
        integer.map(|value| self.in_64_bits(key, value)).transpose()
    }

    fn in_64_bits(&self, key: &str, integer: i128) -> Result<i64, FieldError> {
        i64::try_from(integer).map_err(|_| {
            let found = integer.to_string();
            self.out_of_range(key, "an integer of 64 bits", &found)
        })
    }

    /// A process id.
    ///
    /// # Errors
    ///
    /// [`FieldError`] if it is missing, no integer, or not 1 to `i32::MAX`.
    pub fn pid(&self, key: &str) -> Result<Pid, FieldError> {
        self.as_pid(key, self.integer(key)?)
    }

    /// A process id, if there is one.
    ///
    /// # Errors
    ///
    /// [`FieldError`] if it is no integer, or not 1 to `i32::MAX`.
    pub fn opt_pid(&self, key: &str) -> Result<Option<Pid>, FieldError> {
        let integer = self.opt_integer(key)?;
        integer.map(|raw| self.as_pid(key, raw)).transpose()
    }

    /// A process id, or 0 for "released".
    ///
    /// # Errors
    ///
    /// [`FieldError`] if it is missing, no integer, or not 0 to `i32::MAX`.
    pub fn pid_or_zero(&self, key: &str) -> Result<SidecarPid, FieldError> {
        self.as_pid_or_zero(key, self.integer(key)?)
    }

    /// A process id, or 0 for "released", if there is one.
    ///
    /// # Errors
    ///
    /// [`FieldError`] if it is no integer, or not 0 to `i32::MAX`.
    pub fn opt_pid_or_zero(&self, key: &str) -> Result<Option<SidecarPid>, FieldError> {
        let integer = self.opt_integer(key)?;
        integer.map(|raw| self.as_pid_or_zero(key, raw)).transpose()
    }

    fn as_pid(&self, key: &str, raw: i64) -> Result<Pid, FieldError> {
        let expected = "a process id (1 to 2147483647)";
        Pid::new(raw).map_err(|_| self.out_of_range(key, expected, &raw.to_string()))
    }

    fn as_pid_or_zero(&self, key: &str, raw: i64) -> Result<SidecarPid, FieldError> {
        if raw == 0 {
            return Ok(SidecarPid::Released);
        }
        let expected = "a process id (1 to 2147483647), or 0";
        Pid::new(raw)
            .map(SidecarPid::Process)
            .map_err(|_| self.out_of_range(key, expected, &raw.to_string()))
    }

    /// A number, whole or not; never infinite.
    ///
    /// # Errors
    ///
    /// [`FieldError`] if it is missing or no number.
    pub fn number(&self, key: &str) -> Result<f64, FieldError> {
        self.required(key, "a number", finite)
    }

    /// A number, whole or not, if there is one.
    ///
    /// # Errors
    ///
    /// [`FieldError`] if it is no number.
    pub fn opt_number(&self, key: &str) -> Result<Option<f64>, FieldError> {
        self.opt(key, "a number", finite)
    }

    /// A truth value.
    ///
    /// # Errors
    ///
    /// [`FieldError`] if it is missing or no bool.
    pub fn bool(&self, key: &str) -> Result<bool, FieldError> {
        self.required(key, "a bool", bool)
    }

    /// A truth value, if there is one.
    ///
    /// # Errors
    ///
    /// [`FieldError`] if it is no bool.
    pub fn opt_bool(&self, key: &str) -> Result<Option<bool>, FieldError> {
        self.opt(key, "a bool", bool)
    }

    /// An array.
    ///
    /// # Errors
    ///
    /// [`FieldError`] if it is missing or no array.
    pub fn array(&self, key: &str) -> Result<&[Value], FieldError> {
        self.required(key, "an array", slice)
    }

    /// An array, if there is one.
    ///
    /// # Errors
    ///
    /// [`FieldError`] if it is no array.
    pub fn opt_array(&self, key: &str) -> Result<Option<&[Value]>, FieldError> {
        self.opt(key, "an array", slice)
    }

    /// An array of texts, if there is one.
    ///
    /// # Errors
    ///
    /// [`FieldError`] if it is no array, or has something else than strings.
    pub fn opt_strings(&self, key: &str) -> Result<Option<Vec<&str>>, FieldError> {
        self.opt(key, "an array of strings", strings)
    }

    /// An object in this object.
    ///
    /// # Errors
    ///
    /// [`FieldError`] if it is missing or no object.
    pub fn object(&self, key: &str) -> Result<StrictObject<'_>, FieldError> {
        let fields = self.required(key, "an object", object)?;
        Ok(StrictObject::nested(fields, self.path_of(key) + "."))
    }

    /// An object in this object, if there is one.
    ///
    /// # Errors
    ///
    /// [`FieldError`] if it is no object.
    pub fn opt_object(&self, key: &str) -> Result<Option<StrictObject<'_>>, FieldError> {
        let fields = self.opt(key, "an object", object)?;
        Ok(fields.map(|fields| StrictObject::nested(fields, self.path_of(key) + ".")))
    }
}

const INTEGER: &str = "an integer";

fn integer(field: Field<'_>) -> Option<i128> {
    let number = field.other()?.as_number()?;
    let signed = number.as_i64().map(i128::from);
    signed.or_else(|| number.as_u64().map(i128::from))
}

fn finite(field: Field<'_>) -> Option<f64> {
    field.other()?.as_f64().filter(|number| number.is_finite())
}

fn bool(field: Field<'_>) -> Option<bool> {
    field.other()?.as_bool()
}

fn object(field: Field<'_>) -> Option<&Map<String, Value>> {
    field.other()?.as_object()
}

fn slice(field: Field<'_>) -> Option<&[Value]> {
    field.other()?.as_array().map(Vec::as_slice)
}

fn strings(field: Field<'_>) -> Option<Vec<&str>> {
    slice(field)?.iter().map(Value::as_str).collect()
}

/// Describes a value: its type, and the value itself where it is short.
fn described(field: Field<'_>) -> String {
    let value = match field {
        Field::Text(text) => return format!("the string `{}`", shown(text)),
        Field::Other(value) => value,
    };
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(value) => format!("the bool `{value}`"),
        Value::Number(number) => format!("the number `{}`", shown(&number.to_string())),
        Value::String(text) => format!("the string `{}`", shown(text)),
        Value::Array(values) => format!("an array of {}", values.len()),
        Value::Object(fields) => format!("an object of {}", fields.len()),
    }
}
