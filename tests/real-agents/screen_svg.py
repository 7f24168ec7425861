"""Draws a terminal's screen, with its colours, as an SVG picture."""

import html
import re

CELL_WIDTH, LINE_HEIGHT, FONT_SIZE = 8.4, 19, 14
MARGIN = 16
ESCAPE = re.compile(r"\x1b\[([0-9;:]*)m")
BACKGROUND, FOREGROUND = "#1e1e2e", "#cdd6f4"
COLOURS = ("#45475a", "#f38ba8", "#a6e3a1", "#f9e2af", "#89b4fa", "#cba6f7", "#94e2d5", "#bac2de")


def plain(screen):
    """Returns the text alone, without the last prompt and the space at the ends."""
    lines = [line.rstrip() for line in ESCAPE.sub("", screen).splitlines()]
    while lines and lines[-1] in ("", "$"):
        lines.pop()
    return "\n".join(lines) + "\n"


def _spans(line, style):
    """Yields (text, style) pairs of a line; `style` goes on from the line before."""
    at = 0
    for match in ESCAPE.finditer(line):
        if match.start() > at:
            yield line[at:match.start()], dict(style)
        _apply(match.group(1), style)
        at = match.end()
    if at < len(line):
        yield line[at:], dict(style)


def _apply(codes, style):
    for code in (int(one or 0) for one in codes.split(";")):
        if code == 0:
            style.clear()
        elif code == 1:
            style["font-weight"] = "bold"
        elif code == 2:
            style["opacity"] = "0.65"
        elif code == 22:
            style.pop("font-weight", None)
            style.pop("opacity", None)
        elif 30 <= code <= 37:
            style["fill"] = COLOURS[code - 30]
        elif 90 <= code <= 97:
            style["fill"] = COLOURS[code - 90]
        elif code == 39:
            style.pop("fill", None)


def draw(screen, columns, title):
    """Returns the picture of a screen that is `columns` wide."""
    count = len(plain(screen).splitlines())
    width, height = columns * CELL_WIDTH + 2 * MARGIN, count * LINE_HEIGHT + 2 * MARGIN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" '
        f'height="{height:g}" role="img">',
        f"<title>{html.escape(title)}</title>",
        f'<rect width="100%" height="100%" rx="8" fill="{BACKGROUND}"/>',
        f'<g font-family="ui-monospace,SFMono-Regular,Menlo,Consolas,monospace" font-size="{FONT_SIZE}" '
        f'fill="{FOREGROUND}" xml:space="preserve">',
    ]
    style = {}
    for number, line in enumerate(screen.splitlines()[:count]):
        column = 0
        for text, how in _spans(line, style):
            if text.strip():
                attributes = "".join(f' {name}="{value}"' for name, value in how.items())
                x, y = MARGIN + column * CELL_WIDTH, MARGIN + (number + 0.8) * LINE_HEIGHT
                # Every span starts in its own cell and takes its own cells, whatever font there is.
                parts.append(f'<text x="{x:.1f}" y="{y:.1f}" textLength="{len(text) * CELL_WIDTH:.1f}"'
                             f'{attributes}>{html.escape(text)}</text>')
            column += len(text)
    return "\n".join([*parts, "</g>", "</svg>"]) + "\n"
