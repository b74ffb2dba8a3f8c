"""Generated pages for plugin authors; run `python -m tests.author_pages` in the repository."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import author_reference
import author_rules

FOLDER = Path(__file__).parents[1] / "docs" / "plugin-authors"
PAGES = {"reference.md": author_reference.page, "rules.md": author_rules.page}


def main() -> None:
    """Write the pages."""
    for name, page in PAGES.items():
        (FOLDER / name).write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
