//! Why a field of a JSON object is not what was asked for.

/// Why a field of a JSON object is not what was asked for.
///
/// Names the key as a path from the outermost object: `payload.pid`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FieldError {
    /// The object has no such field.
    #[error("`{key}` is missing")]
    Missing {
        /// The key.
        key: String,
    },
    /// The field has a value of another type.
    #[error("`{key}` is not {expected}: found {found}")]
    WrongType {
        /// The key.
        key: String,
        /// What was expected: `an integer`.
        expected: &'static str,
        /// What was found: the type and the value, cut when it is long.
        found: String,
    },
    /// The field has the right type and an impossible value.
    #[error("`{key}` is not {expected}: found `{found}`")]
    OutOfRange {
        /// The key.
        key: String,
        /// What was expected: `a process id (1 to 2147483647)`.
        expected: &'static str,
        /// The value, cut when it is long.
        found: String,
    },
    /// The object has the field more than once.
    #[error("`{key}` is there more than once")]
    Repeated {
        /// The key.
        key: String,
    },
}

impl FieldError {
    /// The key of the field, as a path from the outermost object.
    #[must_use]
    pub fn key(&self) -> &str {
        match self {
            Self::Missing { key }
            | Self::WrongType { key, .. }
            | Self::OutOfRange { key, .. }
            | Self::Repeated { key } => key,
        }
    }
}
