//! The names that enums have in output.

/// Implements `name` and `NAMES` for an enum from one list. `NAMES` is complete because
/// the compiler checks that the match is. If it has no patterns there are `ALL` and `from_name`
/// too.
macro_rules! names {
    ($of:ident { $($variant:ident $(($($field:tt)+))? => $name:literal,)+ }) => {
        impl $of {
            /// Every value, in the order of [`Self::NAMES`].
            pub const ALL: [Self; Self::NAMES.len()] =
                [$(Self::$variant $(($($field)+))?),+];

            /// Finds a value by its name.
            #[must_use]
            pub fn from_name(name: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|value| value.name() == name)
            }
        }

        $crate::adapter::names::names!($of {
            $(Self::$variant $(($($field)+))? => $name,)+
        });
    };
    ($of:ident { $($variant:pat => $name:literal,)+ }) => {
        impl $of {
            /// Every name.
            pub const NAMES: &'static [&'static str] = &[$($name),+];

            /// The name used in output, files and options.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $($variant => $name,)+
                }
            }
        }
    };
}

pub(crate) use names;
