"""Pictures of tables that pages of docs/accuracy hold: docs/pictures/h100_classes.svg and time_to_accuracy.svg."""
import math

import tables
from error_chart import text

PICTURES = tables.ROOT / "docs" / "pictures"
ACCURACY = tables.ROOT / "docs" / "accuracy"
LINE, TOP, PLOT = 22, 84, 460  # pixels: a row, the head, the plot
FIRST, SECOND = "#7a8aa0", "#c2410c"


def cells(line):
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def table_of(page, head):
    """Rows of the table of `page` whose first line starts with `head`; a ValueError where there is none."""
    lines = iter(page.split("\n"))
    if not any(line.startswith(head) for line in lines):
        raise ValueError(f"no table starts with '{head}'")
    next(lines)  # the line of dashes
    rows = []
    for line in lines:
        if not line.startswith("|"):
            break
        rows.append(cells(line))
    return rows


def frame(width, rows, title, left, names):
    """The opening of a picture with a title, and what both colors stand for."""
    height = TOP + LINE * rows + 4
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
             'font-family="sans-serif">\n<rect width="100%" height="100%" fill="white"/>\n', text(left, 20, title, size=13)]
    for column, (name, color) in enumerate(zip(names, (FIRST, SECOND))):
        parts.append(f'<circle cx="{left + 6 + 220 * column}" cy="40" r="5" fill="{color}"/>\n')
        parts.append(text(left + 18 + 220 * column, 44, name, color=color))
    return parts


def axis(parts, left, rows, marks):
    """Adds dotted lines at `marks`: (share of the plot's width, label)."""
    for share, label in marks:
        x = left + PLOT * share
        parts.append(f'<line x1="{x:.0f}" y1="{TOP - 14}" x2="{x:.0f}" y2="{TOP + LINE * rows - 8}" stroke="#cbd5e1" stroke-dasharray="2 3"/>\n')
        parts.append(text(x, TOP - 18, label, "middle", size=11))


def bar(x, y, width, color):
    return f'<rect x="{x}" y="{y:.0f}" width="{width:.1f}" height="7" fill="{color}"/>\n'


def classes(page):
    """Measured and predicted time of an H100's kernels by class, in ms of all steps."""
    rows = [(name, float(measured), float(ratio)) for name, measured, ratio in table_of(page, "| kernels | measured, ms")]
    left, largest = 270, 200 * math.ceil(max(measured * max(1, ratio) for _, measured, ratio in rows) / 200)
    parts = frame(left + PLOT + 60, len(rows), "time of the kernels of 55 steps on an H100, in ms", left, ("measured", "predicted"))
    axis(parts, left, len(rows), [(ms / largest, str(ms)) for ms in range(0, largest + 1, 200)])
    for i, (name, measured, ratio) in enumerate(rows):
        y = TOP + LINE * i
        parts.append(text(left - 10, y + 4, name, "end"))
        parts.append(bar(left, y - 7, PLOT * measured / largest, FIRST) + bar(left, y, PLOT * measured * ratio / largest, SECOND))
        parts.append(text(left + PLOT * measured * max(1, ratio) / largest + 6, y + 4, f"{ratio:.2f}", size=11))
    return "".join(parts) + "</svg>\n"


def benchmarks(page):
    """Median errors of the throughput, and of the time with epochs by law, of MLPerf's submissions by benchmark."""
    rows = [(row[0], int(row[1].split()[0]), *(float(row[i].split()[0]) / 100 for i in (2, 5))) for row in table_of(page, "| benchmark | rows | throughput")]
    left, largest = 220, 0.5
    parts = frame(left + PLOT + 40, len(rows), "median of |predicted / measured - 1| of MLPerf's submissions (score rows)", left,
                  ("throughput", "time to the target, epochs by law"))
    axis(parts, left, len(rows), [(tenth / 10 / largest, f"{10 * tenth} %") for tenth in range(6)])
    for i, (name, count, *errors) in enumerate(rows):
        y = TOP + LINE * i
        parts.append(text(left - 10, y + 4, f"{name} ({count})", "end"))
        parts.append(f'<line x1="{left}" y1="{y}" x2="{left + PLOT}" y2="{y}" stroke="#e3e8ef"/>\n')
        for error, color in zip(errors, (FIRST, SECOND)):
            parts.append(f'<circle cx="{left + PLOT * min(1, error / largest):.1f}" cy="{y}" r="5" fill="{color}"/>\n')
    return "".join(parts) + "</svg>\n"


def drawings():
    """{file: text of the picture} of all of them."""
    page = lambda name: (ACCURACY / name).read_text(encoding="utf-8")
    return {PICTURES / "h100_classes.svg": classes(page("measured_here.md")), PICTURES / "time_to_accuracy.svg": benchmarks(page("time_to_accuracy.md"))}
