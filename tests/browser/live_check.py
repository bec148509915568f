#!/usr/bin/env python3
"""Turns the sliders of `tbd-sim serve` in headless Chromium as a reader would, and fails on what a reader would see go wrong.

    live_check.py TBD_SIM [--screenshots DIR]

Checks: moving a slider changes the number, to what the command line says, and the charts (how soon is printed: within 100 ms
is meant); every list can be chosen from; what does not fit and what is refused are
said; the address can be kept; a model can be dropped; nothing sticks out of a phone's screen; nothing is reported on the console. Exits with 77
where Chromium, its driver or Python's selenium is not installed.
"""
import argparse
import pathlib
import re
import subprocess
import sys

from page_check import DESKTOP, PHONE, Failures, browser, draw_all, resize, screenshot, wait_for

MOVES = 40
SOURCE = pathlib.Path(__file__).resolve().parents[2]
TILE = "document.querySelector('[data-metric=\"{}\"] .number')"


class Server:
    def __init__(self, program):
        self.program = program
        self.process = subprocess.Popen([program, "serve", "--port", "0"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.url = self.process.stdout.readline().split(" ")[0].strip()
        if not self.url:
            sys.exit(self.process.stderr.read())

    def end(self):
        self.process.terminate()
        self.process.wait(timeout=10)


def tile(page, name):
    """The number on a card with all its digits, which it shows when it is pointed at."""
    return page.execute_script(f"return {TILE.format(name)}.title")


def check_digits(page, checks):
    """Cards show three significant digits of the number that they have, with its unit."""
    for name in ("throughput", "iteration_time", "gpu_utilization", "fp32_utilization", "memory_total"):
        shown, whole = page.execute_script(f"return [{TILE.format(name)}.textContent, {TILE.format(name)}.title]")
        (short, unit), (long, same) = shown.split(" ", 1), whole.split(" ", 1)
        checks.expect(unit == same, f"{name}: {shown} is shown for {whole}")
        checks.expect("." not in short or len(short.replace(".", "").lstrip("0")) <= 3, f"{name}: {shown} has more digits than are known")
        checks.expect(abs(float(short) - float(long)) <= 0.005 * float(long), f"{name}: {shown} is shown for {whole}")


def settle(page):
    """Waits until what was just done is answered, and then every kernel is."""
    return wait_for(page, "document.documentElement.dataset.atRest")


def move(page, slider, place, settles=True):
    page.execute_script("const s = document.getElementById(arguments[0]); s.value = arguments[1]; s.dispatchEvent(new Event('input'))", slider, place)
    return settle(page) if settles else None


def choose(page, name, value):
    page.execute_script("const s = document.getElementById(arguments[0]); s.value = arguments[1]; s.dispatchEvent(new Event('change'))", name, value)
    return settle(page)


def open_page(page, url, checks):
    page.get(url)
    checks.expect(settle(page), "the page was not ready in time")


def check_slider(page, server, checks):
    was = tile(page, "throughput")
    before = page.execute_script("return document.querySelector('.scatterlayer .js-line').getAttribute('d')")
    checks.expect(move(page, "bandwidth", 24), "a moved slider was not answered")
    now = tile(page, "throughput")
    after = page.execute_script("return document.querySelector('.scatterlayer .js-line').getAttribute('d')")
    checks.expect(was != now, f"twice the bandwidth changes nothing: {was}")
    checks.expect(before != after, "the chart stays as it was")
    command = page.execute_script("return document.querySelector('code').textContent")
    said = subprocess.run([server.program, *re.sub("'", "", command).replace(" GB/s", "GB/s").split(" ")[1:]], check=True, capture_output=True, text=True).stdout
    checks.expect(f"  {now}  " in said, f"the page says {now}, the command line says\n{said}")
    page.execute_script("document.getElementById('reset').click()")
    settle(page)
    checks.expect(tile(page, "throughput") == was, "as sold it is not what it was")


def check_speed(page, checks):
    times = []
    for step in range(MOVES):
        slider, places = (("batch", 12), ("sms", 33), ("gpus", 8), ("machines", 8))[step % 4]
        page.execute_script("delete document.querySelector('.status').dataset.ms")
        move(page, slider, (step * 5) % places, settles=False)
        checks.expect(wait_for(page, "document.querySelector('.status').dataset.ms"), "a slider was not answered")
        times.append(float(page.execute_script("return document.querySelector('.status').dataset.ms")))
    times.sort()
    print(f"{MOVES} moves: median {times[MOVES // 2]:.0f} ms, longest {times[-1]:.0f} ms until the numbers are there")


def check_lists(page, checks):
    for name, value in (("gpu", "v100_sxm2_16gb"), ("model", "transformer"), ("framework", "pytorch"), ("precision", "amp")):
        was = tile(page, "throughput")
        choose(page, name, value)
        refused = page.execute_script("return !document.querySelector('.message').hidden")
        checks.expect(refused or tile(page, "throughput") != was, f"another {name} changes nothing")
    choose(page, "precision", "bf16")
    choose(page, "gpu", "k80")
    checks.expect(page.execute_script("const m = document.querySelector('.message'); return !m.hidden && m.textContent.length > 20"),
                  "arithmetic that a card does not have is not refused in words")
    choose(page, "precision", "fp32")
    checks.expect(page.execute_script("return document.querySelector('.message').hidden"), "a refusal stays after it")
    move(page, "batch", 22)
    checks.expect(page.execute_script("return Boolean(document.querySelector('.tile.wrong'))"), "what does not fit is not said")


def check_address(page, checks):
    move(page, "batch", 5)
    kept, now = page.execute_script("return location.href"), tile(page, "throughput")
    open_page(page, kept, checks)
    checks.expect(tile(page, "throughput") == now, "the address does not bring the prediction back")


def check_layouts(page, server, checks, directory):
    """The page of layouts: the best one to begin with, a slider, what does not divide, a phone's screen."""
    resize(page, DESKTOP, "light")
    open_page(page, server.url + "layouts", checks)
    titles = page.execute_script("return [...document.querySelectorAll('section h2')].map((title) => title.textContent)")
    checks.expect(titles == ["Stages over time", "Where the time of a step goes", "Communication by dimension", "Memory by rank",
                             "In numbers"], f"sections {titles}")
    move(page, "pp", 2)
    command = page.execute_script("return document.querySelector('footer code').textContent")
    checks.expect("--pp 4" in command, f"pp 4 is not in: {command}")
    text = page.execute_script("return document.querySelector('section p').textContent")
    checks.expect("pp 4" in text, f"after a slider moved the page says {text}")
    move(page, "tp", 6)
    said = page.execute_script("return document.querySelector('.message').textContent")
    checks.expect("do not divide" in said, f"of 64 x 4 ranks on 64 GPUs the page says {said!r}")
    page.execute_script("document.getElementById('best').click()")
    settle(page)
    draw_all(page, checks)
    resize(page, PHONE, "light")
    open_page(page, server.url + "layouts", checks)
    cards = page.execute_script("return [...document.querySelectorAll('.tile')].filter((card) => card.offsetParent).length")
    checks.expect(cards == 3, f"layouts: {cards} cards on a phone's screen, not 3")
    draw_all(page, checks)
    wide = page.execute_script("return document.documentElement.scrollWidth - innerWidth")
    checks.expect(wide <= 0, f"layouts: the page is {wide} pixels wider than a phone's screen")
    page.execute_script("scrollTo({top: 0, behavior: 'instant'})")
    screenshot(page, directory, "live_layouts")


DROP = """const [name, text] = arguments, data = new DataTransfer();
data.items.add(new File([text], name));
document.dispatchEvent(new DragEvent("drop", {dataTransfer: data, bubbles: true}));"""


def check_drop(page, server, checks):
    """A model or GPU that is dropped on the page is shown, its link opens it again, and what is wrong is said with its place."""
    text = (SOURCE / "graphs/models/alexnet.yaml").read_text().replace("title: AlexNet", "title: My Net")
    open_page(page, server.url, checks)
    page.execute_script("delete document.documentElement.dataset.atRest")
    page.execute_script(DROP, "mine.yaml", text)
    checks.expect(wait_for(page, "document.querySelector('h1').textContent.startsWith('My Net')"), "a dropped model is not shown")
    settle(page)
    checks.expect("mine.yaml" in page.execute_script("return document.querySelector('code').textContent"), "the command does not name the dropped file")
    kept, now = page.execute_script("return location.href"), tile(page, "throughput")
    open_page(page, kept, checks)
    checks.expect(tile(page, "throughput") == now, "the link does not bring the dropped model back")
    card = (SOURCE / "tests/import/files/devicequery_v100.txt").read_text()
    page.execute_script(DROP, "card.txt", card)
    checks.expect(wait_for(page, "document.getElementById('gpu').value.startsWith('dropped/')"), "a dropped GPU is not chosen")
    settle(page)
    open_page(page, page.execute_script("return location.href"), checks)
    checks.expect(page.execute_script("return document.getElementById('gpu').value").startswith("dropped/"), "the link does not bring the dropped GPU back")
    page.execute_script(DROP, "bad.yaml", text.replace("sample:", "smaple:"))
    checks.expect(wait_for(page, "document.querySelector('.message').textContent.match(/^bad.yaml:[0-9]+:[0-9]+: /)"), "what is wrong with a dropped file is not said with its place")


def check(page, server, checks, directory):
    for name, size, scheme in (("light", DESKTOP, "light"), ("dark", DESKTOP, "dark"), ("phone", PHONE, "light")):
        resize(page, size, scheme)
        open_page(page, server.url, checks)
        if name == "light":
            check_slider(page, server, checks)
            check_digits(page, checks)
            check_speed(page, checks)
            check_lists(page, checks)
            check_address(page, checks)
            check_drop(page, server, checks)
            screenshot(page, directory, "live_refused")
            open_page(page, server.url, checks)
        move(page, "bandwidth", 20)
        draw_all(page, checks)
        wide = page.execute_script("return document.documentElement.scrollWidth - innerWidth")
        checks.expect(wide <= 0, f"{name}: the page is {wide} pixels wider than the screen")
        page.execute_script("scrollTo({top: 0, behavior: 'instant'})")
        screenshot(page, directory, f"live_{name}")
    check_layouts(page, server, checks, directory)
    for entry in page.get_log("browser"):
        if "status of 400" not in entry["message"]:  # the refusal that was asked for
            checks.expect(False, f"console: {entry['level']}: {entry['message']}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--screenshots", type=pathlib.Path, help="a directory for pictures: live_light, live_dark, live_phone, live_refused")
    arguments = parser.parse_args()
    if arguments.screenshots is not None:
        arguments.screenshots.mkdir(parents=True, exist_ok=True)
    checks = Failures()
    page = browser()
    server = Server(arguments.program)
    try:
        check(page, server, checks, arguments.screenshots)
    finally:
        server.end()
        page.quit()
    return 1 if checks.count else 0


if __name__ == "__main__":
    sys.exit(main())
