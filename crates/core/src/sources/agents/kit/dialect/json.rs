//! Values in the records of any agent.

use jiff::Timestamp;
use serde_json::Value;

/// The value at a place in a record: at `/message/usage`, or `/content/0`.
///
/// Unlike [`Value::pointer`] it copies no names, of which it makes two copies each: that
/// cost more than parsing the record. Nor does it search for what ends a name, which is
/// slower than a look at each of its few bytes.
pub(crate) fn value_at<'a>(record: &'a Value, pointer: &str) -> Option<&'a Value> {
    let (mut value, mut rest) = (record, pointer.strip_prefix('/'));
    while let Some(names) = rest {
        let end = names.bytes().position(|byte| byte == b'/');
        let (name, others) = names.split_at_checked(end.unwrap_or(names.len()))?;
        value = match value {
            Value::Object(fields) => fields.get(name)?,
            Value::Array(values) => values.get(name.parse::<usize>().ok()?)?,
            _ => return None,
        };
        rest = others.strip_prefix('/');
    }
    Some(value)
}

/// The text at a place in a record; `None` also for an empty text.
pub(crate) fn text_at<'a>(record: &'a Value, pointer: &str) -> Option<&'a str> {
    let text = value_at(record, pointer)?.as_str()?;
    (!text.is_empty()).then_some(text)
}

/// The values in the array at a place in a record; none if there is no array.
pub(crate) fn values_at<'a>(record: &'a Value, pointer: &str) -> std::slice::Iter<'a, Value> {
    let values = value_at(record, pointer).and_then(Value::as_array);
    values.map_or(&[][..], Vec::as_slice).iter()
}

/// The date at a place in a record, as RFC 3339 writes it, in milliseconds since 1970.
pub(crate) fn date_at(record: &Value, pointer: &str) -> Option<i64> {
    date_of(text_at(record, pointer)?)
}

/// The date that a text is, as RFC 3339 writes it, in milliseconds since 1970.
pub(crate) fn date_of(text: &str) -> Option<i64> {
    let at: Timestamp = text.parse().ok()?;
    Some(at.as_millisecond())
}

/// The count at a place in a record.
pub(crate) fn count_at(record: &Value, pointer: &str) -> Option<u64> {
    value_at(record, pointer)?.as_u64()
}

/// The sum of money at a place in a record, in billionths; none if it is nothing.
pub(crate) fn nano_at(record: &Value, pointer: &str) -> Option<u64> {
    let amount = value_at(record, pointer)?.as_f64()?;
    let nano = (amount * 1e9).round();
    // A float that is too large becomes the largest number, and NaN becomes 0.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "checked"
    )]
    let whole = if nano >= 1.0 { nano as u64 } else { 0 };
    (whole > 0).then_some(whole)
}

/// The texts of a message's content: a text, or the texts in one part or several. Thinking
/// is left out.
pub(crate) fn texts_in(content: Option<&Value>) -> impl Iterator<Item = &str> {
    let parts = content.and_then(Value::as_array).into_iter().flatten();
    let whole = content.filter(|content| !content.is_array()).into_iter();
    let texts = whole.chain(parts);
    texts.filter_map(|part| part.as_str().or_else(|| text_of_part(part)))
}

fn text_of_part(part: &Value) -> Option<&str> {
    // Parts without a type are Google's; those of OpenAI are `input_text`, `output_text`.
    let kind = part.get("type").and_then(Value::as_str);
    let is_thought = part.get("thought").and_then(Value::as_bool) == Some(true);
    let is_text = kind.is_none_or(|kind| kind.ends_with("text")) && !is_thought;
    part.get("text")?.as_str().filter(|_| is_text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_where_a_json_pointer_finds_it() {
        let record = serde_json::json!({
            "a": {"b": [1, {"c": "text"}], "": {"": 2}},
            "": 3,
        });
        for pointer in [
            "",
            "/",
            "/a",
            "/a/",
            "/a//",
            "/a/b",
            "/a/b/0",
            "/a/b/1/c",
            "/a/b/1/c/d",
            "/a/b/2",
            "/a/b/x",
            "/x",
            "/x/y",
        ] {
            assert_eq!(
                value_at(&record, pointer),
                record.pointer(pointer),
                "{pointer}"
            );
        }
    }
}
