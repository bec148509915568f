#!/usr/bin/env python3
"""Opens an HTML report in headless Chromium as a reader would, and fails on what a reader would see go wrong.

    page_check.py PAGE.html [--screenshots DIR]

Checks: nothing is reported on the console (the page's own policy turns any attempt to load something into an error);
every chart of every view is drawn; pointing at a mark says what it is; lists and tables work; nothing sticks out of a
phone's screen, and no text out of its chart; it prints. Exits with 77 where Chromium, its driver or Python's selenium is not installed.
"""
import argparse
import base64
import pathlib
import shutil
import sys
import time

SKIPPED = 77
DESKTOP, PHONE, NARROW = (1280, 900), (390, 844), (420, 844)


class Failures:
    def __init__(self):
        self.count = 0

    def expect(self, condition, what):
        if not condition:
            self.count += 1
            print(f"FAILED: {what}", file=sys.stderr)


def browser():
    def skip(missing):
        print(f"skipped: {missing} is not installed", file=sys.stderr)
        sys.exit(SKIPPED)

    try:
        from selenium import webdriver
    except ImportError:
        skip("Python's selenium")
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if not chromium or not driver:
        skip("Chromium or its driver")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    from selenium.webdriver.chrome.service import Service
    return webdriver.Chrome(service=Service(driver), options=options)


def resize(page, size, scheme):
    page.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                         {"width": size[0], "height": size[1], "deviceScaleFactor": 1, "mobile": size == PHONE})
    page.execute_cdp_cmd("Emulation.setEmulatedMedia",
                         {"features": [{"name": "prefers-color-scheme", "value": scheme}]})


def wait_for(page, script, seconds=60, argument=None):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if page.execute_script(f"return Boolean({script})", argument):
            return True
        time.sleep(0.05)
    return False


def draw_all(page, checks, every=1):
    """Scrolls to each (or every n-th) chart that is shown and looks at it until it is drawn: a page sees where it was scrolled to only
    with its next frame."""
    figures = page.find_elements("css selector", "figure.chart")
    for figure in figures[::every]:
        if figure.is_displayed():
            page.execute_script("arguments[0].scrollIntoView({behavior: 'instant', block: 'center'})", figure)
            checks.expect(wait_for(page, "arguments[0].dataset.drawn", argument=figure), "a chart was not drawn")


def check_inside(page, checks, name):
    """No text of a drawn chart sticks out of its figure, whose edge would cut it."""
    outside = page.execute_script("""
        return [...document.querySelectorAll('figure.chart[data-drawn]')].filter((figure) => figure.offsetParent).flatMap((figure) => {
          const plot = figure.querySelector('svg.main-svg').getBoundingClientRect();
          return [...figure.querySelectorAll('svg text')].filter((text) => {
            const box = text.getBoundingClientRect();
            return box.width > 0 && (box.right > plot.right + 1 || box.left < plot.left - 1);
          }).map((text) => `${figure.querySelector('figcaption').textContent}: ${text.textContent}`);
        });""")
    checks.expect(not outside, f"{name}: cut at the edge of its chart: {outside[:5]}")


def check_hover(page, checks):
    """Points at a mark or a bar of each kind of chart; Plotly shows what it is in its hover layer."""
    from selenium.webdriver import ActionChains
    for kind, selector in {"mark": ".scatterlayer .points path", "bar": ".barlayer .point path"}.items():
        for place in page.find_elements("css selector", selector):
            if not place.is_displayed() or place.size["width"] < 3 or place.size["height"] < 3:
                continue
            page.execute_script("arguments[0].scrollIntoView({behavior: 'instant', block: 'center'})", place)
            ActionChains(page).move_to_element(place).perform()
            said = wait_for(page, "document.querySelector('.hoverlayer .hovertext')", 3)
            text = page.execute_script("const t = document.querySelector('.hoverlayer .hovertext'); return t && t.textContent")
            checks.expect(said and text and any(character.isdigit() for character in text), f"pointing at a {kind} says nothing")
            break


def check_lists(page, checks):
    """Chooses from each list: at most six entries, spread over it, since all are drawn by the same code."""
    for chosen in page.find_elements("css selector", "select.choose"):
        options = chosen.find_elements("css selector", "option")
        for place in sorted({round(i * (len(options) - 1) / 5) for i in range(6)}):
            options[place].click()
            draw_all(page, checks)
        options[0].click()


def check_tables(page, checks):
    for header in page.find_elements("css selector", "th"):
        if header.is_displayed():
            page.execute_script("arguments[0].click()", header)
            checks.expect(header.get_attribute("aria-sort") == "ascending", "a click on a column does not sort")
            break


def screenshot(page, directory, name):
    if directory is None:
        return
    height = page.execute_script("return document.documentElement.scrollHeight")
    picture = page.execute_cdp_cmd("Page.captureScreenshot", {
        "captureBeyondViewport": True,
        "clip": {"x": 0, "y": 0, "width": page.execute_script("return innerWidth"), "height": min(height, 16000), "scale": 1}})
    (directory / f"{name}.png").write_bytes(base64.b64decode(picture["data"]))


def check(page, url, checks, directory):
    screens = (("light", DESKTOP, "light", 1), ("dark", DESKTOP, "dark", 4), ("phone", PHONE, "light", 1), ("narrow", NARROW, "light", 4))
    for name, size, scheme, every in screens:  # all charts on a wide and on a small screen; a sample where colours or margins differ
        resize(page, size, scheme)
        page.get(url)
        checks.expect(wait_for(page, "document.documentElement.dataset.ready"), f"{name}: the page was not ready in time")
        draw_all(page, checks, 1 if directory else every)
        check_inside(page, checks, name)
        if name == "light":
            check_hover(page, checks)
            check_lists(page, checks)
            check_tables(page, checks)
        wide = page.execute_script("return document.documentElement.scrollWidth - innerWidth")
        checks.expect(wide <= 0, f"{name}: the page is {wide} pixels wider than the screen")
        screenshot(page, directory, name)
    printed = base64.b64decode(page.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})["data"])
    checks.expect(printed.startswith(b"%PDF") and len(printed) > 20000, "it does not print")
    if directory is not None:
        (directory / "print.pdf").write_bytes(printed)
    for entry in page.get_log("browser"):
        checks.expect(False, f"console: {entry['level']}: {entry['message']}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("page", type=pathlib.Path)
    parser.add_argument("--screenshots", type=pathlib.Path, help="a directory for pictures: light, dark, phone, narrow, print")
    arguments = parser.parse_args()
    if arguments.screenshots is not None:
        arguments.screenshots.mkdir(parents=True, exist_ok=True)
    checks = Failures()
    page = browser()
    try:
        check(page, arguments.page.resolve().as_uri(), checks, arguments.screenshots)
    finally:
        page.quit()
    return 1 if checks.count else 0


if __name__ == "__main__":
    sys.exit(main())
