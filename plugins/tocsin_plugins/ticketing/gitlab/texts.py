"""Markdown in which GitLab finds nothing to do.

https://docs.gitlab.com/user/project/quick_actions/ and, for references, which leave a note where
they lead to, https://docs.gitlab.com/user/markdown/#gitlab-specific-references.
"""

from __future__ import annotations

import re

_QUICK_ACTION = re.compile(r"^(?=/)", re.MULTILINE)
_CODE = re.compile(r"((?<!\\)`+[^`]*`+)")  # within it a backslash means nothing
_REFERENCE = re.compile(r"(?<!\\)(?=[!%][\w\"])")  # those that mean something in GitLab alone


def escape_markdown(markdown: str) -> str:
    """Return Markdown in which no line is a quick action and no word names a merge request.

    GitLab looks at lines after it has dropped every CR, and so do we.
    """
    parts = _CODE.split(markdown.replace("\r", ""))
    parts[::2] = [_REFERENCE.sub(r"\\", it) for it in parts[::2]]
    return _QUICK_ACTION.sub(r"\\", "".join(parts))
