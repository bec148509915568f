#!/usr/bin/env python3
"""Checks the Markdown pages of the project without a network: links to files and headings lead somewhere, and files and
folders named in `code` exist. Prints what is wrong; exit status 1 if anything is."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
ROOMS = ("hwspecs", "graphs", "costmodel", "simulate", "calibrate", "tests", "docs", "cmake", "python")
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
CODE = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
PATH = re.compile(rf"(?:{'|'.join(ROOMS)})/[\w./-]*")
SOURCE_NAME = re.compile(r"[\w-]+\.(?:h|cpp|cuh|cu|py|sh)")


def pages(root):
    found = [*root.glob("*.md"), *(page for room in ROOMS for page in (root / room).rglob("*.md"))]
    return sorted(page for page in found if "node_modules" not in page.parts)


def without_fences(text):
    return re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S)


def anchor(heading):
    """As GitHub and MkDocs make it of a heading."""
    plain = re.sub(r"[`*]|\[([^\]]*)\]\([^)]*\)", lambda m: m[1] or "", heading).strip().lower()
    return re.sub(r"\s", "-", re.sub(r"[^\w\s-]", "", plain))


def anchors(page):
    return {anchor(heading) for heading in re.findall(r"^#+ (.*)$", without_fences(page.read_text(encoding="utf-8")), flags=re.M)}


def broken_links(page, text):
    for target in LINK.findall(text):
        if re.match(r"[a-z]+:", target):
            continue
        file, _, heading = target.partition("#")
        there = (page.parent / file).resolve() if file else page
        if not there.exists():
            yield f"no file {target}"
        elif heading and there.suffix == ".md" and heading not in anchors(there):
            yield f"no heading {target}"


def missing_files(root, names, text):
    for code in CODE.findall(text):
        if PATH.fullmatch(code) and not (root / code).exists():
            yield f"no file {code}"
        if SOURCE_NAME.fullmatch(code) and code not in names:
            yield f"no file is called {code}"


def complaints(root):
    names = {file.name for room in ROOMS for file in (root / room).rglob("*") if file.is_file()} | {file.name for file in root.iterdir()}
    for page in pages(root):
        text = without_fences(page.read_text(encoding="utf-8"))
        for complaint in [*broken_links(page, text), *missing_files(root, names, text)]:
            yield f"{page.relative_to(root)}: {complaint}"


def main():
    found = list(complaints(ROOT))
    print("\n".join(found) or f"{len(pages(ROOT))} pages, every link and file is there")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
