"""Templates of the console, of which pages render some only in certain states."""

from __future__ import annotations

from pathlib import Path

from jinja2 import Environment

import tocsin.web.console


def test_every_template_can_be_parsed():
    templates = sorted((Path(tocsin.web.console.__file__).parent / "templates").rglob("*.j2"))
    assert templates
    for template in templates:
        Environment().parse(template.read_text(encoding="utf-8"), filename=template.name)
