"""The kinds of tracker that are installed: entry points of the group `tocsin.trackers`."""

from __future__ import annotations

from difflib import get_close_matches
from functools import cache
from importlib.metadata import entry_points

from tocsin import Tracker

GROUP = "tocsin.trackers"


@cache
def load_tracker(name: str) -> type[Tracker]:
    """Return the kind of tracker of this name; nothing else is imported.

    Raises ValueError, which names those that there are, where there is none or it is no tracker.
    """
    found = entry_points(group=GROUP, name=name)
    if not found:
        known = sorted({it.name for it in entry_points(group=GROUP)})
        near = get_close_matches(name, known, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise ValueError(f"there is no tracker {name!r}; name one of: {', '.join(known)}{hint}")
    try:
        kind = next(iter(found)).load()
    except (Exception, SystemExit) as error:
        raise ValueError(f"the tracker {name!r} cannot be imported: {error}") from error
    if not (isinstance(kind, type) and issubclass(kind, Tracker)):
        words = f"the tracker {name!r} is no `tocsin.Tracker`"
        raise ValueError(words)  # noqa: TRY004 - what validation takes for a mistake of the setting
    return kind
