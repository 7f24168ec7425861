//! The colours of the view: those of the configuration, or none.

use anstyle::{AnsiColor, Color as Colour, Effects, Style as Painted};
use ratatui_core::style::{Color, Modifier, Style};

use crate::condition::Condition;
use crate::config::Config;

/// The colours.
#[derive(Debug)]
pub(in crate::commands::top) struct Paint {
    conditions: [(Condition, Style); 9],
    is_coloured: bool,
}

impl Paint {
    pub(in crate::commands::top) fn of(config: &Config, is_coloured: bool) -> Self {
        let style = |condition| {
            let style = if is_coloured {
                converted(config.style(condition))
            } else {
                Style::new()
            };
            (condition, style)
        };
        Self {
            conditions: Condition::ALL.map(style),
            is_coloured,
        }
    }

    pub(super) fn condition(&self, condition: Condition) -> Style {
        let mut known = self.conditions.iter();
        let found = known.find(|(known, _)| known.name() == condition.name());
        found.map_or_else(Style::new, |(_, style)| *style)
    }

    /// A colour, where there are any.
    pub(super) fn colour(&self, colour: Color) -> Style {
        if self.is_coloured {
            Style::new().fg(colour)
        } else {
            Style::new()
        }
    }
}

/// A style of the configuration.
fn converted(painted: Painted) -> Style {
    let mut style = Style::new();
    if let Some(Colour::Ansi(colour)) = painted.get_fg_color() {
        style = style.fg(match colour {
            AnsiColor::Black => Color::Black,
            AnsiColor::Red => Color::Red,
            AnsiColor::Green => Color::Green,
            AnsiColor::Yellow => Color::Yellow,
            AnsiColor::Blue => Color::Blue,
            AnsiColor::Magenta => Color::Magenta,
            AnsiColor::Cyan => Color::Cyan,
            AnsiColor::White => Color::Gray,
            AnsiColor::BrightBlack => Color::DarkGray,
            AnsiColor::BrightRed => Color::LightRed,
            AnsiColor::BrightGreen => Color::LightGreen,
            AnsiColor::BrightYellow => Color::LightYellow,
            AnsiColor::BrightBlue => Color::LightBlue,
            AnsiColor::BrightMagenta => Color::LightMagenta,
            AnsiColor::BrightCyan => Color::LightCyan,
            AnsiColor::BrightWhite => Color::White,
        });
    }
    let effects = [
        (Effects::BOLD, Modifier::BOLD),
        (Effects::DIMMED, Modifier::DIM),
        (Effects::ITALIC, Modifier::ITALIC),
        (Effects::UNDERLINE, Modifier::UNDERLINED),
    ];
    for (effect, modifier) in effects {
        if painted.get_effects().contains(effect) {
            style = style.add_modifier(modifier);
        }
    }
    style
}
