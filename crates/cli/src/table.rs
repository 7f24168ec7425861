//! Lays out a table: as wide as its text in a pipe, as wide as the screen on a terminal.

use std::io::{self, Write};

use anstyle::Style;

use crate::colour::paint;
use crate::text::{cut, width};

/// The gap between two columns.
const GAP: &str = "  ";

/// The alignment of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    /// Words.
    Left,
    /// Numbers.
    Right,
}

/// The layout of a column.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shape {
    /// Its heading.
    pub(crate) heading: &'static str,
    /// The alignment.
    pub(crate) side: Side,
    /// How narrow it may get before another column is dropped; `None` if its text is never
    /// cut.
    pub(crate) width_min: Option<usize>,
    /// The order in which columns are dropped for lack of room: highest first; `None` never.
    pub(crate) left_out_at: Option<u8>,
}

/// One cell.
#[derive(Debug, Clone, Default)]
pub(crate) struct Cell {
    /// Its text, already fit for a terminal.
    pub(crate) text: String,
    /// How it is shown.
    pub(crate) style: Style,
}

impl Cell {
    /// A cell without a style.
    pub(crate) fn plain(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            style: Style::new(),
        }
    }
}

/// The width of a table without cuts.
pub(crate) fn natural_width(shapes: &[Shape], rows: &[Vec<Cell>]) -> usize {
    let widths = natural_widths(shapes, rows).into_iter().map(Some);
    total(&widths.collect::<Vec<Option<usize>>>())
}

/// Whether there is room for each column.
pub(crate) fn fitting(shapes: &[Shape], rows: &[Vec<Cell>], width_max: Option<usize>) -> Vec<bool> {
    let widths = fit(shapes, natural_widths(shapes, rows), width_max);
    widths.iter().map(Option::is_some).collect()
}

/// Whether a line of headings comes before the rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Header {
    Shown,
    Hidden,
}

/// Writes a table within `width_max` columns.
///
/// # Errors
///
/// The [`io::Error`] of the writer.
pub(crate) fn write_table(
    out: &mut dyn Write,
    shapes: &[Shape],
    rows: &[Vec<Cell>],
    header: Header,
    width_max: Option<usize>,
    is_coloured: bool,
) -> io::Result<()> {
    let widths = fit(shapes, natural_widths(shapes, rows), width_max);
    let headings: Vec<Cell> = shapes
        .iter()
        .map(|shape| Cell {
            text: shape.heading.to_owned(),
            style: Style::new().dimmed(),
        })
        .collect();
    let mut write = |row: &[Cell]| {
        let line = line_of(shapes, row, &widths, is_coloured);
        writeln!(out, "{line}")
    };
    if header == Header::Shown {
        write(&headings)?;
    }
    rows.iter().try_for_each(|row| write(row))
}

fn natural_widths(shapes: &[Shape], rows: &[Vec<Cell>]) -> Vec<usize> {
    let mut widths: Vec<usize> = shapes.iter().map(|shape| width(shape.heading)).collect();
    for row in rows {
        for (widest, cell) in widths.iter_mut().zip(row) {
            *widest = (*widest).max(width(&cell.text));
        }
    }
    widths
}

/// The width of each column; `None` for a dropped column.
fn fit(shapes: &[Shape], natural: Vec<usize>, width_max: Option<usize>) -> Vec<Option<usize>> {
    let mut widths: Vec<Option<usize>> = natural.into_iter().map(Some).collect();
    let Some(width_max) = width_max else {
        return widths;
    };
    loop {
        let excess = total(&widths).saturating_sub(width_max);
        if excess == 0 || shrink(shapes, &mut widths, excess) {
            return widths;
        }
        let last = shapes
            .iter()
            .enumerate()
            .filter(|(at, _)| widths.get(*at).is_some_and(Option::is_some))
            .filter_map(|(at, shape)| Some((shape.left_out_at?, at)))
            .max();
        match last.and_then(|(_, at)| widths.get_mut(at)) {
            Some(width) => *width = None,
            None => {
                // No column can be dropped any more: what remains is cut.
                force(shapes, &mut widths, excess);
                return widths;
            }
        }
    }
}

fn total(widths: &[Option<usize>]) -> usize {
    let shown: Vec<usize> = widths.iter().copied().flatten().collect();
    let gaps = shown.len().saturating_sub(1) * GAP.len();
    shown.iter().sum::<usize>() + gaps
}

/// Takes `excess` from the columns that may be cut, widest first, but not below their
/// minimum.
fn shrink(shapes: &[Shape], widths: &mut [Option<usize>], excess: usize) -> bool {
    let slack = |at: usize, width: Option<usize>| {
        let shape = shapes.get(at)?;
        Some(width?.saturating_sub(shape.width_min?))
    };
    let room: usize = widths
        .iter()
        .enumerate()
        .filter_map(|(at, width)| slack(at, *width))
        .sum();
    if room < excess {
        return false;
    }
    for _ in 0..excess {
        let widest = widths
            .iter()
            .enumerate()
            .filter(|(at, width)| slack(*at, **width).is_some_and(|slack| slack > 0))
            .max_by_key(|(_, width)| **width)
            .map(|(at, _)| at);
        if let Some(Some(width)) = widest.and_then(|at| widths.get_mut(at)) {
            *width -= 1;
        }
    }
    true
}

/// Takes `excess` from the columns that may be cut, widest first, down to one character.
fn force(shapes: &[Shape], widths: &mut [Option<usize>], excess: usize) {
    for _ in 0..excess {
        let widest = widths
            .iter_mut()
            .zip(shapes)
            .filter(|(_, shape)| shape.width_min.is_some())
            .filter_map(|(width, _)| width.as_mut())
            .filter(|width| **width > 1)
            .max();
        if let Some(width) = widest {
            *width -= 1;
        }
    }
}

fn line_of(shapes: &[Shape], row: &[Cell], widths: &[Option<usize>], is_coloured: bool) -> String {
    let mut line = String::new();
    let mut blanks = 0;
    let shown = shapes.iter().zip(row).zip(widths);
    let shown = shown.filter_map(|(cell, width)| Some((cell, (*width)?)));
    for (at, ((shape, cell), column)) in shown.enumerate() {
        if at > 0 {
            blanks += GAP.len();
        }
        let text = cut(&cell.text, column);
        let padding = column.saturating_sub(width(&text));
        if shape.side == Side::Right {
            blanks += padding;
        }
        if !text.is_empty() {
            // Padding is written only before the next cell.
            line.extend(std::iter::repeat_n(' ', blanks));
            blanks = 0;
            line.push_str(&paint(&text, cell.style, is_coloured));
        } else {
            blanks += column - padding;
        }
        if shape.side == Side::Left {
            blanks += padding;
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use anstyle::{AnsiColor, Style};

    use super::{Cell, Header, Shape, Side, write_table};
    use crate::text::width;

    const NAME: Shape = Shape {
        heading: "NAME",
        side: Side::Left,
        width_min: None,
        left_out_at: None,
    };
    const TITLE: Shape = Shape {
        heading: "TITLE",
        side: Side::Left,
        width_min: Some(8),
        left_out_at: None,
    };
    const AGE: Shape = Shape {
        heading: "AGE",
        side: Side::Right,
        width_min: None,
        left_out_at: Some(1),
    };

    fn table(rows: &[[&str; 3]], width_max: Option<usize>) -> String {
        let rows: Vec<Vec<Cell>> = rows
            .iter()
            .map(|row| row.iter().map(|text| Cell::plain(*text)).collect())
            .collect();
        let mut out = Vec::new();
        let shapes = [NAME, TITLE, AGE];
        write_table(&mut out, &shapes, &rows, Header::Shown, width_max, false).unwrap();
        String::from_utf8(out).unwrap()
    }

    const ROWS: [[&str; 3]; 3] = [
        ["codex", "Fix the flaky login test", "3m"],
        ["qwen", "恢复会话的测试", "12h"],
        ["kimi", "", ""],
    ];

    #[test]
    fn nothing_is_cut_in_a_pipe() {
        let expected = "\
NAME   TITLE                     AGE
codex  Fix the flaky login test   3m
qwen   恢复会话的测试            12h
kimi
";
        assert_eq!(table(&ROWS, None), expected);
    }

    #[test]
    fn the_widest_column_gives_way_first() {
        let expected = "\
NAME   TITLE           AGE
codex  Fix the flaky…   3m
qwen   恢复会话的测试  12h
kimi
";
        assert_eq!(table(&ROWS, Some(26)), expected);
    }

    #[test]
    fn a_column_is_left_out_when_the_others_would_get_too_narrow() {
        let expected = "\
NAME   TITLE
codex  Fix the f…
qwen   恢复会话…
kimi
";
        assert_eq!(table(&ROWS, Some(17)), expected);
    }

    #[test]
    fn no_line_is_wider_than_the_terminal_has_room_for() {
        for width_max in 9..60 {
            for line in table(&ROWS, Some(width_max)).lines() {
                assert!(width(line) <= width_max, "{line:?} in {width_max}");
            }
        }
    }

    #[test]
    fn colours_take_no_room() {
        let row = vec![
            Cell {
                text: "x".to_owned(),
                style: Style::new().fg_color(Some(AnsiColor::Red.into())),
            },
            Cell::plain("y"),
            Cell::plain("1"),
        ];
        let mut out = Vec::new();
        let shapes = [NAME, TITLE, AGE];
        write_table(&mut out, &shapes, &[row], Header::Shown, None, true).unwrap();
        let text = String::from_utf8(out).unwrap();
        let last = text.lines().last().unwrap();
        assert_eq!(last, "\u{1b}[31mx\u{1b}[0m     y        1");
    }
}
