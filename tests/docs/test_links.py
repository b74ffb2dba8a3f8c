"""Links between pages, and paths that pages for contributors name, lead to what exists."""

from __future__ import annotations

import re
import subprocess
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
_CODE = re.compile(r"```.*?```", re.DOTALL)


def list_pages() -> list[str]:
    listed = subprocess.run(
        ["git", "ls-files", "*.md"], cwd=ROOT, capture_output=True, text=True, check=False
    ).stdout.split()
    return listed or [str(path.relative_to(ROOT)) for path in ROOT.glob("docs/**/*.md")]


def read_prose(page: Path) -> str:
    return _CODE.sub("", page.read_text(encoding="utf-8"))


@cache
def list_anchors(page: Path) -> set[str]:
    """Return the anchors of the headings, formed as code forges and the site form them."""
    headings = re.findall(r"^#{1,6} (.+)$", read_prose(page), flags=re.MULTILINE)
    plain = [re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", heading).lower() for heading in headings]
    named = re.findall(r'id="([^"]+)"', page.read_text(encoding="utf-8"))
    return {re.sub(r"[^\w\- ]", "", heading).strip().replace(" ", "-") for heading in plain} | {
        *named
    }


def find_broken(page: Path) -> list[str]:
    broken = []
    for link in re.findall(r"\]\(([^)\s]+)\)", read_prose(page)):
        if link.startswith(("http:", "https:", "mailto:")):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        is_there = target.exists() and (
            not anchor or target.suffix != ".md" or anchor in list_anchors(target)
        )
        if not is_there:
            broken.append(f"{page.relative_to(ROOT)}: {link}")
    return broken


def test_every_link_leads_to_a_page_and_a_heading():
    assert [link for page in list_pages() for link in find_broken(ROOT / page)] == []


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", "THREAT_MODEL.md"])
def test_paths_of_the_code_exist(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    paths = [path for path in re.findall(r"`([\w./-]+/[\w./-]*)`", text) if path[0] not in "/."]
    bases = (ROOT, ROOT / "core/tocsin")
    files = [path for path in paths if path.endswith((".py", ".toml", ".md")) or path[-1] == "/"]
    missing = [path for path in files if not any((base / path).exists() for base in bases)]
    assert files
    assert missing == []
