"""MkDocs hook: formulas that arithmatex marks become MathML, which browsers draw without a script."""
import html
import re

from latex2mathml.converter import convert

FORMULA = re.compile(r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</\1>', re.S)


def on_page_content(content, **_):
    return FORMULA.sub(lambda m: convert(html.unescape(m[2]), display="inline" if m[1] == "span" else "block"), content)
