"""What an instance of Splunk SOAR has been set to know: labels and severities."""

from __future__ import annotations

from collections.abc import Iterator

from tocsin import Json

_REQUIRED_SEVERITIES = ("low", "medium", "high")


def find_missing_options(options: Json, label: str) -> Iterator[str]:
    """Yield what the answer to `/rest/container_options` lacks: the label, a severity.

    Where it lists none at all, it does not say what there is.
    """
    labels, severities = _list_names(options, "label"), _list_names(options, "severity")
    if labels and label.lower() not in labels:
        yield f"there is no label {label}; there are {', '.join(sorted(labels))}"
    for severity in _REQUIRED_SEVERITIES:
        if severities and severity not in severities:
            yield f"there is no severity {severity}"


def _list_names(options: Json, kind: str) -> set[str]:
    """Return the words of a kind in lower case, listed as text or as objects with a name."""
    listed = options.get(kind) if isinstance(options, dict) else None
    members = listed if isinstance(listed, list) else []
    names = [it.get("name") if isinstance(it, dict) else it for it in members]
    return {it.lower() for it in names if isinstance(it, str)}
