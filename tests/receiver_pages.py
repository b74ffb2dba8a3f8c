"""The pages of docs/soar/receivers: `python -m tests.receiver_pages` writes them anew."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import tocsin_templates
from tocsin import Event, EventType
from tocsin.contracts import load_contract
from tocsin.delivery.rendering import Renderer
from tocsin.model import Contract, Idempotency

ROOT = Path(__file__).parents[1]
PAGES = ROOT / "docs/soar/receivers"
[FOLDER] = map(Path, tocsin_templates.tocsin_template_paths())
RECEIVERS = sorted(it.name for it in FOLDER.iterdir() if it.is_dir() and it.name[0] not in "_.")
_URL = "https://tocsin.example.com/incidents/4711"
_INCIDENT = {
    "number": 4711,
    "title": "Many failed sign-ins",
    "description": "47 failed sign-ins of 12 users within a minute, then one that succeeded.",
    "severity": "High",
    "status": "New",
    "provider": "cloud",
    "external_id": "b3a1",
    "external_number": "1024",
    "source_url": "https://siem.example.com/incidents/b3a1",
    "techniques": ["T1110"],
    "occurred_at": "2026-11-21T05:20:00.000Z",
    "created_at": "2026-11-21T05:33:01.123Z",
    "updated_at": "2026-11-21T05:33:01.123Z",
    "url": _URL,
    "entities": [
        {"kind": "ip", "value": "203.0.113.7"},
        {"kind": "user", "value": "j.doe"},
        {"kind": "host", "value": "vpn-1.example.com"},
    ],
}
ALERT = Event(
    id="evt_01KAJD9V3N8Q4R5S6T7V8W9X0Y",
    event_type=EventType.INCIDENT_ALERT,
    timestamp=datetime(2026, 11, 21, 5, 33, 1, 123000, UTC),
    data={
        "incident_number": 4711,
        **{name: _INCIDENT[name] for name in ("title", "severity", "status", "provider", "url")},
    },
    subject="incident:4711",
    context={"incident": _INCIDENT},
)
_TWICE = {
    Idempotency.NATIVE: "The receiver has a key of its own, and makes nothing twice.",
    Idempotency.SEARCH: "It is looked for before it is made.",
    Idempotency.NONE: "Deliveries come at least once, and the receiver has no key for that: "
    "whoever acts on one has to look at the event's id, which stands in the body and in the header "
    "`webhook-id`.",
}
_TRIED = {
    "real": "Against the receiver itself.",
    "recording": "Against recorded answers of the receiver.",
    "simulator": "Against a simulator.",
    "contract": "Against the contract alone, which was written from the receiver's documentation: "
    "with hostile, missing and oversized values, but not against the receiver itself yet.",
}


def page(receiver: str) -> str:
    """Return the page of a receiver."""
    contract = load_contract([FOLDER], receiver)
    assert contract is not None
    return "\n".join(_lines(receiver, contract)) + "\n"


def _lines(receiver: str, contract: Contract) -> Iterator[str]:
    yield from (f"# {contract.name}", "")
    told = f"[its documentation]({contract.documentation})"
    yield f'`template = "{receiver}"`. What it takes is told in {told}.'
    yield from ("", "## At its side", "")
    yield from (f"- {note}" for note in contract.notes)
    yield from ("", "## In `plugins.toml`", "", "```toml", *_destination(receiver, contract), "```")
    yield from (
        "",
        "## What arrives",
        "",
        "For a new incident:",
        "",
        "```json",
        _body(receiver),
        "```",
    )
    yield from ("", "What is too long is cut where one can see it, with the link to the rest.")
    yield from ("", "## What its answers mean", "", *_answers(contract))
    yield from ("", "## Twice the same event", "", _TWICE[contract.idempotency])
    yield from ("", "## Tried", "", _TRIED[contract.tested])


def _destination(receiver: str, contract: Contract) -> Iterator[str]:
    yield f"[destinations.{receiver}]"
    yield 'plugin = "webhook"'
    yield f'url = "{contract.url}"'
    yield f'secret = {{ file = "secrets/{receiver}" }}'
    yield f'template = "{receiver}"'
    if contract.headers:
        given = ", ".join(f'{it} = {{ env = "{var}" }}' for it, var in contract.headers.items())
        yield f"headers = {{ {given} }}"


def _body(receiver: str) -> str:
    body = json.loads(Renderer([FOLDER]).render(receiver, ALERT))
    return json.dumps(body, indent=2, ensure_ascii=False)


def _answers(contract: Contract) -> Iterator[str]:
    answer = contract.answer
    said = [f"`{it.pointer}` being `{json.dumps(it.equals)}`" for it in answer.success]
    yield f"- A success: any 2xx{' with ' + ' and '.join(said) if said else ''}."
    if answer.remote_id:
        yield f"- What it made is called what stands at `{answer.remote_id}`; the receipt keeps it."
    if answer.known:
        words = "whatever its status: it has the event already, which is a success"
        yield f"- An answer with `{answer.known.pointer}`, {words}."
    if answer.permanent:
        statuses = ", ".join(map(str, answer.permanent))
        yield f"- {statuses}: not tried again. The delivery is dead, and can be replayed."
    yield "- Anything else is [tried again](../webhooks.md#retries); 410 disables the destination."


def main() -> None:
    """Write every page."""
    PAGES.mkdir(exist_ok=True)
    for receiver in RECEIVERS:
        (PAGES / f"{receiver}.md").write_text(page(receiver), encoding="utf-8")


if __name__ == "__main__":
    main()
