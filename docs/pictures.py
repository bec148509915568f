#!/usr/bin/env python3
"""Makes the pictures of the README anew: what commands print as SVG, pages as PNG in headless Chromium.

    docs/pictures.py build/release/simulate/tbd-sim [NAME...]

Needs what the browser tests need: Chromium, its driver, Python's selenium, Plotly.
"""
import pathlib
import shlex
import subprocess
import sys
import tempfile
from html import escape

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests" / "browser"))
import live_check  # noqa: E402
import page_check  # noqa: E402

FONT = 12.5  # pixels; a character of a monospaced font is 0.602 of it wide
NO_BREAK = "\u00a0"  # spaces that no renderer takes for one
WIDE, HIGH = 0.602 * FONT, 1.45 * FONT

# Name, command, and how many of its lines are shown: all, or so many and an ellipsis.
PRINTED = [
    ("predict", "tbd-sim --gpu titanxp --batch 64", 28),
    ("explain", "tbd-sim --gpu titanxp --batch 64 --model resnet50 --framework mxnet --explain", None),
    ("whatif", "tbd-sim whatif resnet50 --framework mxnet --gpu titanxp --batch 32", 20),
    ("sweep", "tbd-sim sweep --model resnet50 --framework mxnet --gpu titanxp,p4000,t4 --batch 8:128:8 --pareto throughput,memory_total,price", None),
]


def svg_of(command, lines):
    columns = max(len(line) for line in [command + "  ", *lines])
    width, height = 28 + columns * WIDE, 30 + (len(lines) + 2) * HIGH

    def text(line, row, style=""):
        if not line.strip():
            return ""
        return (f'<text x="14" y="{14 + (row + 1) * HIGH:.1f}" textLength="{len(line) * WIDE:.1f}" lengthAdjust="spacingAndGlyphs"{style}>'
                f'{escape(line).replace(" ", NO_BREAK)}</text>\n')

    rows = text("$ " + command, 0, ' font-weight="bold"')
    for i, line in enumerate(lines):
        rows += text(line, i + 1.5)
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}">\n'
            f'<rect x="0.5" y="0.5" width="{width - 1:.0f}" height="{height - 1:.0f}" rx="8" fill="#f5f7fa" stroke="#d8dde5"/>\n'
            f'<g font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, \'DejaVu Sans Mono\', monospace" font-size="{FONT}" fill="#1c2330">\n'
            f'{rows}</g>\n</svg>\n')


def print_pictures(program, wanted):
    for name, command, most in PRINTED:
        if wanted and name not in wanted:
            continue
        output = subprocess.run([program, *shlex.split(command)[1:]], check=True, capture_output=True, text=True).stdout
        lines = output.rstrip().split("\n")
        if most is not None and len(lines) > most:
            lines = lines[:most] + ["..."]
        (HERE / "pictures" / f"{name}.svg").write_text(svg_of(command, lines), encoding="utf-8")


def shoot(page, name, size, ready):
    """The window as it is, once `ready` and what is in view is drawn."""
    import base64
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
    print_pictures(sys.argv[1], sys.argv[2:])
    show_pages(sys.argv[1], sys.argv[2:])


if __name__ == "__main__":
    main()
