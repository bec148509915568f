#!/usr/bin/env python3
"""Makes docs/pictures anew: the rooms as SVG, pages as PNG in headless Chromium.

    docs/pictures.py build/release/simulate/tbd-sim [rooms|validate|report|roofline|serve ...]

All but rooms need what the browser tests need: Chromium, its driver, Python's selenium, Plotly.
"""
import base64
import pathlib
import subprocess
import sys
import tempfile
from html import escape

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests" / "browser"))

# The rooms as boxes: name, caption, and the left edge, top, width in a grid of columns and rows. A room may include those
# below it; tests/architecture_test.cpp has the exact arrows.
COLUMN, ROW, GAP, MARGIN, HEAD = 86, 46, 8, 14, 30
ROWS = 11
ROOMS = [
    ("cli", "argv, exit codes, progress", 4, 0, 6),
    ("serve", "the live page", 4, 1, 6),
    ("report", "tables, CSV, JSON, HTML pages, traces", 4, 2, 6),
    ("validation", "how far off?", 4, 3, 3), ("sweep", "a million scenarios", 7, 3, 3),
    ("analysis", "scaling, what if, savings", 4, 4, 3), ("compare", "a profile beside its prediction", 7, 4, 3),
    ("job", "a job on a cluster: names resolved, its best layout, metrics", 4, 5, 6),
    ("prediction", "from a scenario to metrics", 4, 6, 3), ("plan", "a layout's step and memory, the search", 7, 6, 3),
    ("workload", "steps by length; files read once", 4, 7, 3), ("communication", "synchronizing gradients", 7, 7, 3),
    ("memory", "what must be resident?", 4, 8, 3), ("timeline", "when does each kernel run?", 7, 8, 3),
    ("framework", "what does a framework version do?", 4, 9, 3), ("import", "files of other tools", 7, 9, 3),
    ("layout", "how ranks share a decoder; what is legal", 4, 10, 3), ("schedule", "pipelines in closed form, by events", 7, 10, 3),
    *((name, caption, 0, i * (ROWS - 1) / 6, 3.75) for i, (name, caption) in enumerate([
        ("cli", "argv"), ("framework_fit", "training runs to a framework's constants"), ("fit", "records to profiles"),
        ("samples", "records ready for fitting"), ("importers", "published tables to records"),
        ("measure", "times kernels on a GPU (CUDA)"), ("records", "one measured call as a row")])),
]
BASE = [
    ("costmodel", "how long does one kernel or all-reduce take? formulas, residuals, profiles", 0, 0, 10),
    ("hwspecs", "what is a GPU, CPU, link, machine?", 0, 1, 5), ("graphs", "which kernels and tensors does an iteration have?", 5, 1, 5),
    ("hwspecs/base", "quantities, errors, strict YAML, the catalogue", 0, 2, 10),
]


def box(name, caption, x, y, width, color):
    left, top, wide = MARGIN + x * COLUMN + GAP / 2, y + GAP / 2, width * COLUMN - GAP
    return (f'<rect x="{left:.0f}" y="{top:.0f}" width="{wide:.0f}" height="{ROW - GAP}" rx="5" fill="{color}" stroke="#9aa7b8"/>\n'
            f'<text x="{left + wide / 2:.0f}" y="{top + 16:.0f}" text-anchor="middle" font-weight="bold">{escape(name)}</text>\n'
            f'<text x="{left + wide / 2:.0f}" y="{top + 31:.0f}" text-anchor="middle" font-size="10.5" fill="#4a5668">{escape(caption)}</text>\n')


def frame(name, x, width):
    return (f'<rect x="{MARGIN + x * COLUMN - 2:.0f}" y="{MARGIN}" width="{width * COLUMN + 4:.0f}" height="{HEAD + ROWS * ROW + 2}" rx="8" '
            f'fill="none" stroke="#c6cfdb"/>\n<text x="{MARGIN + x * COLUMN + 10:.0f}" y="{MARGIN + 20}" font-weight="bold" fill="#4a5668">{name}</text>\n')


def draw_rooms():
    below = MARGIN + HEAD + ROWS * ROW + 12
    width, height = 2 * MARGIN + 10 * COLUMN, below + 3 * ROW + 30
    shapes = frame("calibrate/", 0, 3.75) + frame("simulate/", 4, 6)
    shapes += "".join(box(n, c, x, MARGIN + HEAD + y * ROW, w, "#e8f1e4" if x < 4 else "#e6eef9") for n, c, x, y, w in ROOMS)
    shapes += "".join(box(n, c, x, below + y * ROW, w, "#faf1dd") for n, c, x, y, w in BASE)
    shapes += (f'<text x="{width / 2:.0f}" y="{height - 10}" text-anchor="middle" font-size="11.5" fill="#4a5668">A room may include rooms below it, never '
               f'above; calibrate/framework_fit and calibrate/cli also use rooms of simulate/.</text>\n')
    (HERE / "pictures" / "rooms.svg").write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" role="img">\n'
        f'<title>The rooms of tbd-sim and what each may include</title>\n<rect width="{width}" height="{height}" fill="#ffffff"/>\n'
        f'<g font-family="-apple-system, \'Segoe UI\', Helvetica, Arial, \'DejaVu Sans\', sans-serif" font-size="12.5" fill="#1c2330">\n{shapes}</g>\n</svg>\n', encoding="utf-8")


def shoot(page, name, size, ready):
    """The window as it is, once `ready` and what is in view is drawn."""
    import page_check
    checks = page_check.Failures()
    checks.expect(page_check.wait_for(page, ready), f"{name} was not ready in time")
    page.execute_script("document.querySelectorAll('.modebar-container').forEach(bar => { bar.style.display = 'none'; })")
    checks.expect(page_check.wait_for(page, "[...document.querySelectorAll('figure.chart')].filter(f => f.offsetParent && "
                                            "f.getBoundingClientRect().top < innerHeight && f.getBoundingClientRect().bottom > 0).every(f => f.dataset.drawn)"), f"{name}: a chart was not drawn")
    if checks.count:
        sys.exit(1)
    picture = page.execute_cdp_cmd("Page.captureScreenshot", {"clip": {"x": page.execute_script("return scrollX"), "y": page.execute_script("return scrollY"),
                                                                       "width": size[0], "height": size[1], "scale": 1}})
    (HERE / "pictures" / f"{name}.png").write_bytes(base64.b64decode(picture["data"]))


def at_heading(page, words):
    page.execute_script("[...document.querySelectorAll('h2')].find(h => h.textContent === arguments[0]).scrollIntoView({behavior: 'instant'})", words)


READY = "document.documentElement.dataset.ready"


def show_pages(program, wanted):
    import live_check  # needs selenium
    import page_check
    page = page_check.browser()
    size = (1180, 900)
    page_check.resize(page, size, "light")
    try:
        with tempfile.TemporaryDirectory() as folder:
            for name, command, heading, size in (
                    ("validate", [program, "validate", "--html"], "Predicted against measured", (1180, 800)),
                    ("report", [program, "report", "--gpu", "titanxp", "-o"], "Throughput", (1180, 860)),
                    ("roofline", [program, "report", "--gpu", "titanxp", "--model", "resnet50", "--framework", "mxnet", "-o"], "Kernels", (1180, 900))):
                if wanted and name not in wanted:
                    continue
                page_check.resize(page, size, "light")
                file = pathlib.Path(folder) / f"{name}.html"
                subprocess.run([*command, str(file)], check=True)
                page.get(file.as_uri())
                page_check.wait_for(page, READY)
                if heading:
                    at_heading(page, heading)
                shoot(page, name, size, READY)
        if not wanted or "serve" in wanted:
            server = live_check.Server(program)
            page_check.resize(page, (1180, 900), "light")
            try:
                live_check.open_page(page, server.url, page_check.Failures())
                live_check.move(page, "bandwidth", 24)
                live_check.move(page, "sms", 20)
                shoot(page, "serve", (1180, 900), "true")
            finally:
                server.end()
    finally:
        page.quit()


def main():
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    (HERE / "pictures").mkdir(exist_ok=True)
    wanted = sys.argv[2:]
    if not wanted or "rooms" in wanted:
        draw_rooms()
    if wanted != ["rooms"]:
        show_pages(sys.argv[1], wanted)


if __name__ == "__main__":
    main()
