//! From the model to the cells of the screen. Pure.

mod columns;
mod paint;

use ratatui_core::buffer::Buffer;
use ratatui_core::style::{Color, Modifier, Style};

use self::columns::{Column, chosen, fitted};
pub(super) use self::paint::Paint;
use super::item::Item;
use super::model::{FRAME_LINES, HEAD_LINES, Line, Model, Sheet, Sort};
use crate::condition::Condition;
use crate::text;

/// The narrowest screen that rows fit on, in columns.
const WIDTH_MIN: u16 = 60;
/// The lowest.
const HEIGHT_MIN: u16 = FRAME_LINES + 2;

/// The keys in the order in which they get room.
const KEYS: [&str; 9] = [
    "? help",
    "q quit",
    "/ filter",
    "s sort",
    "Enter details",
    "g go",
    "m messages",
    "r resume",
    "d dismiss",
];
/// From how many columns on the head begins with a name.
const WIDTH_OF_NAMED: u16 = 80;

/// Draws everything.
pub(super) fn draw(model: &Model, paint: &Paint, cells: &mut Buffer) {
    let (width, height) = (cells.area.width, cells.area.height);
    if width < WIDTH_MIN || height < HEIGHT_MIN {
        let needed = format!("whosup top needs {WIDTH_MIN}x{HEIGHT_MIN}, this is {width}x{height}");
        write(cells, 0, 0, &needed, Style::new());
        return;
    }
    head(model, cells);
    match &model.sheet {
        Some(sheet) => draw_sheet(sheet, model, cells),
        None => rows(model, paint, cells),
    }
    foot(model, paint, cells);
}

/// Writes a text from a column on, as far as there is room.
fn write(cells: &mut Buffer, x: u16, y: u16, text: &str, style: Style) {
    let room = cells.area.width.saturating_sub(x);
    if y < cells.area.height {
        let text = text::cut(text, room.into());
        cells.set_stringn(x, y, text, room.into(), style);
    }
}

fn head(model: &Model, cells: &mut Buffer) {
    let with = |condition: &str| {
        let items = model.items.iter();
        items
            .filter(|item| item.condition.name() == condition)
            .count()
    };
    let states = Condition::ALL.iter().filter_map(|condition| {
        let count = with(condition.name());
        (count > 0).then(|| format!("{count} {}", condition.name()))
    });
    let mut parts: Vec<String> = states.collect();
    if !model.problems.is_empty() {
        parts.push(text::count(
            model.problems.len(),
            "problem (p)",
            "problems (p)",
        ));
    }
    if !model.filter.is_empty() {
        parts.push(format!("filter: {}", model.filter));
    }
    if model.sort != Sort::State {
        parts.push(format!("by {}", model.sort.name()));
    }
    if cells.area.width >= WIDTH_OF_NAMED {
        parts.insert(0, "whosup top".to_owned());
    }
    let line = text::visible(&parts.join(" "));
    write(
        cells,
        0,
        0,
        &line,
        Style::new().add_modifier(Modifier::BOLD),
    );
}

fn rows(model: &Model, paint: &Paint, cells: &mut Buffer) {
    let columns = chosen(cells.area.width.into());
    let mut x = 2;
    let dim = Style::new().add_modifier(Modifier::DIM);
    for (column, width) in &columns {
        let name = fitted(column.name(), *width, column.is_number());
        write(cells, x, 1, &name, dim);
        x = x.saturating_add(to_cells(*width)).saturating_add(1);
    }
    let lines = model.lines();
    if lines.is_empty() {
        empty(model, cells);
    }
    let shown = lines.iter().skip(model.top).take(model.height());
    for (y, line) in (HEAD_LINES..).zip(shown) {
        match line {
            Line::Project(name, count) => {
                let name = format!("{name} ({count})");
                write(
                    cells,
                    0,
                    y,
                    &name,
                    Style::new().add_modifier(Modifier::BOLD),
                );
            }
            Line::Row(item) => row(model, item, &columns, y, paint, cells),
        }
    }
}

fn row(
    model: &Model,
    item: &Item,
    columns: &[(Column, usize)],
    y: u16,
    paint: &Paint,
    cells: &mut Buffer,
) {
    let is_selected = model.selected.as_ref() == Some(&item.id);
    if is_selected {
        write(cells, 0, y, ">", Style::new());
    }
    let mut x = 2;
    for (column, width) in columns {
        let style = match column {
            Column::State => paint.condition(item.condition),
            Column::Context | Column::ContextBar => context_style(item.context_percent, paint),
            _ => Style::new(),
        };
        let text = fitted(&column.text(model, item), *width, column.is_number());
        write(cells, x, y, &text, style);
        x = x.saturating_add(to_cells(*width)).saturating_add(1);
    }
    if is_selected {
        let area = cells.area;
        for x in area.left()..area.right() {
            if let Some(cell) = cells.cell_mut((x, y)) {
                cell.modifier.insert(Modifier::REVERSED);
            }
        }
    }
}

/// As in the dashboard: yellow from 70 % on, red from 90 %.
fn context_style(percent: Option<f64>, paint: &Paint) -> Style {
    match percent {
        Some(90.0..) => paint.colour(Color::Red),
        Some(70.0..) => paint.colour(Color::Yellow),
        _ => Style::new(),
    }
}

fn empty(model: &Model, cells: &mut Buffer) {
    let lines = if model.filter.is_empty() {
        [
            "No agent is running, and none crashed in the last day.",
            "A session appears here once its agent has started.",
        ]
    } else {
        ["No session matches the filter.", "Esc clears it."]
    };
    for (y, line) in (HEAD_LINES.saturating_add(1)..).zip(lines) {
        write(cells, 2, y, line, Style::new());
    }
}

fn draw_sheet(sheet: &Sheet, model: &Model, cells: &mut Buffer) {
    let title = text::one_line(&sheet.title);
    write(
        cells,
        0,
        1,
        &title,
        Style::new().add_modifier(Modifier::REVERSED),
    );
    let lines = sheet.lines.iter().skip(sheet.top).take(model.height());
    for (y, line) in (HEAD_LINES..).zip(lines) {
        write(cells, 0, y, &text::visible(line), Style::new());
    }
}

fn foot(model: &Model, paint: &Paint, cells: &mut Buffer) {
    let last = cells.area.height.saturating_sub(1);
    let about = match (&model.note, &model.sheet, model.selected()) {
        (Some(note), ..) => text::one_line(note),
        (None, None, Some(item)) => about(item),
        _ => String::new(),
    };
    write(
        cells,
        0,
        last.saturating_sub(1),
        &about,
        paint.colour(Color::Cyan),
    );
    let keys = if model.is_typing {
        format!(
            "/{}_   Enter keeps the filter, Esc clears it",
            text::visible(&model.filter)
        )
    } else if model.sheet.is_some() {
        "Up Down PgUp PgDn scroll  q Esc close".to_owned()
    } else {
        fitting_keys(cells.area.width.into())
    };
    write(
        cells,
        0,
        last,
        &keys,
        Style::new().add_modifier(Modifier::DIM),
    );
}

fn fitting_keys(width: usize) -> String {
    let mut line = String::new();
    for key in KEYS {
        let gap = if line.is_empty() { "" } else { "  " };
        let longer = format!("{line}{gap}{key}");
        if longer.len() > width {
            break;
        }
        line = longer;
    }
    line
}

/// What the columns have no room for.
fn about(item: &Item) -> String {
    let asks = Some(&item.asks).filter(|asks| !asks.is_empty());
    let parts = [
        asks.map(|asks| format!("asks: {asks}")),
        item.pid.map(|pid| format!("PID {pid}")),
        Some(item.place.clone()),
        Some(item.session.clone()),
    ];
    let parts: Vec<String> = parts
        .into_iter()
        .flatten()
        .filter(|part| !part.is_empty())
        .collect();
    parts.join("  ")
}

fn to_cells(width: usize) -> u16 {
    u16::try_from(width).unwrap_or(u16::MAX)
}
