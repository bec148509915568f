"""Draws docs/pictures/errors.svg: how far predictions are from measured runs, a line for each group of runs."""
from html import escape

import tables

PICTURE = tables.ROOT / "docs" / "pictures" / "errors.svg"

LEFT, RIGHT, TOP, LINE, PLOT = 190, 150, 84, 22, 460  # pixels: names, shares, head, a group, the plot
LARGEST = 0.4  # error at the right edge; larger ones are drawn there, with their number
ROW_KINDS = {"development": "#7a8aa0", "unseen": "#c2410c"}


def weighted(rows):
    """Mean error and share within the interval of rows of several tables, by configuration; None without rows."""
    if not rows:
        return None
    return tables.mean(rows, "mean", "configurations"), tables.mean(rows, "coverage", "configurations")


def groups():
    """(group, {kind of rows: (mean error, share within the interval) or None}), sorted by name."""
    rows = {"development": tables.expected("score"), "unseen": tables.unseen_entries()[-1][2]}
    names = sorted({row["group"] for of_kind in rows.values() for row in of_kind})
    return [(name, {kind: weighted([row for row in of_kind if row["group"] == name]) for kind, of_kind in rows.items()}) for name in names]


def place(error):
    return LEFT + PLOT * min(error, LARGEST) / LARGEST


def text(x, y, content, anchor="start", color="#2b3445", size=12):
    return f'<text x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}" fill="{color}" font-size="{size}">{escape(content)}</text>\n'


def group_line(y, name, found):
    drawn = [text(LEFT - 10, y + 4, name.replace("_", " "), "end"),
             f'<line x1="{LEFT}" y1="{y}" x2="{LEFT + PLOT}" y2="{y}" stroke="#e3e8ef"/>\n']
    for column, (kind, color) in enumerate(ROW_KINDS.items()):
        if found[kind] is None:
            continue
        error, share = found[kind]
        drawn.append(f'<circle cx="{place(error):.1f}" cy="{y}" r="5" fill="{color}"/>\n')
        drawn.append(text(LEFT + PLOT + 60 + 70 * column, y + 4, f"{100 * share:.0f} %", "end", color))
    return "".join(drawn)


def drawing():
    """The picture as text of an SVG file."""
    lines = groups()
    bottom = TOP + LINE * len(lines)
    width, height = LEFT + PLOT + RIGHT, bottom + 4
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
             'font-family="sans-serif">\n<rect width="100%" height="100%" fill="white"/>\n',
             text(LEFT, 20, "mean of |predicted / measured - 1| of the runs of a group", size=13),
             text(LEFT + PLOT + 130, 20, "within 80 % interval", "end", size=13)]
    for column, (kind, color) in enumerate(ROW_KINDS.items()):
        parts.append(f'<circle cx="{LEFT + 6 + 160 * column}" cy="40" r="5" fill="{color}"/>\n')
        parts.append(text(LEFT + 18 + 160 * column, 44, f"{kind} rows", color=color))
    for tenth in range(5):
        x = place(tenth / 10)
        parts.append(f'<line x1="{x:.0f}" y1="{TOP - 14}" x2="{x:.0f}" y2="{bottom - 8}" stroke="#cbd5e1" stroke-dasharray="2 3"/>\n')
        parts.append(text(x, TOP - 18, f"{10 * tenth} %", "middle", size=11))
    parts += [group_line(TOP + LINE * i, name, found) for i, (name, found) in enumerate(lines)]
    return "".join(parts) + "</svg>\n"
