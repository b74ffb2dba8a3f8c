"""The pages of receivers, and their list: `python -m tests.receiver_pages` writes them anew."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from importlib.metadata import entry_points
from pathlib import Path

import tocsin_templates
from receiver_samples import ALERT
from tocsin.contracts import load_contract
from tocsin.delivery.rendering import Renderer
from tocsin.model import Contract, Idempotency

ROOT = Path(__file__).parents[1]
LIST = ROOT / "docs/soar/receivers.md"
PAGES = ROOT / "docs/soar/receivers"
[FOLDER] = map(Path, tocsin_templates.tocsin_template_paths())
PICTURES = PAGES / "pictures"


ALL = sorted(path.name for path in FOLDER.iterdir() if path.is_dir() and path.name[0] not in "_.")
RECEIVERS = [name for name in ALL if (FOLDER / name / "body.schema.json").exists()]
"""Those that are sent a body of JSON."""
TRACKERS = {entry_point.load().receiver for entry_point in entry_points(group="tocsin.trackers")}
"""Those that the channel `ticketing` brings."""
_TWICE = {
    Idempotency.NATIVE: "The receiver has a key of its own, and makes nothing twice.",
    Idempotency.SEARCH: "It is looked for before it is made.",
    Idempotency.NONE: "Deliveries come at least once, and the receiver has no key for that: "
    "whoever acts on one has to look at the event's id, which stands in the body and in the header "
    "`webhook-id`.",
}
_BY_WEBHOOK = "A plain `webhook` makes one for each delivery, also where an event comes twice."
_TRIED = {
    "real": "Against the receiver itself.",
    "recording": "Against recorded answers of the receiver.",
    "simulator": "Against a simulator.",
    "contract": "Against the contract alone, which was written from the receiver's documentation: "
    "with hostile, missing and oversized values, but not against the receiver itself yet.",
}


def rows() -> str:
    """Return the rows of the list of receivers."""
    return "".join(f"{_row(receiver)}\n" for receiver in ALL)


def _row(receiver: str) -> str:
    contract = load_contract([FOLDER], receiver)
    assert contract is not None
    named = f"[{contract.name}](receivers/{receiver}.md)"
    twice = f"{contract.idempotency}"
    if _is_body_of_tracker(receiver, contract):
        twice = f"none; [`ticketing`](ticketing.md): {twice}"
    return f"| `{receiver}` | {named} | {twice} | {contract.tested} |"


def _is_body_of_tracker(receiver: str, contract: Contract) -> bool:
    """Return whether a webhook can bring it, but only the channel `ticketing` brings it once."""
    return contract.channel is None and receiver in TRACKERS


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
    if contract.channel:
        told = f"[this channel]({_channel_page(contract)}), which has its own settings"
        yield from ("", f"A `webhook` cannot bring this. It takes {told}.")
    yield from (
        "",
        "## What arrives",
        *_picture(receiver, contract),
        "",
        "For a new incident:",
        "",
        *_sent(receiver, contract),
    )
    yield from ("", "What is too long is cut where one can see it, with the link to the rest.")
    if contract.channel is None:
        yield from ("", "## What its answers mean", "", *_answers(contract))
    yield from ("", "## Twice the same event", "", _twice(receiver, contract))
    yield from ("", "## Tried", "", _TRIED[contract.tested])


def _channel_page(contract: Contract) -> str:
    name = f"{contract.channel}.md"
    pages = (f"../../operators/{name}", f"../{name}", f"../connectors/{name}")
    return next((it for it in pages if (PAGES / it).is_file()), pages[-1])


def _twice(receiver: str, contract: Contract) -> str:
    words = _TWICE[contract.idempotency]
    if _is_body_of_tracker(receiver, contract):
        told = words[0].lower() + words[1:]
        return f"{_BY_WEBHOOK} With [the channel `ticketing`](../ticketing.md): {told}"
    return (
        words if "body" in contract.parts else words.replace("the header `webhook-id`", "a header")
    )


def _sent(receiver: str, contract: Contract) -> Iterator[str]:
    if "body" in contract.parts:
        yield from ("```json", _body(receiver), "```")
        return
    renderer = Renderer([FOLDER])
    for part in sorted({*contract.parts} - {"html"}):
        told = renderer.render(receiver, ALERT, part).decode()
        yield from (f"The {part}:", "", "```text", told, "```", "")
    yield from ("The same as HTML:", "")
    yield f"![The mail, light](pictures/{receiver}-light.png)"
    yield f"![The mail, dark](pictures/{receiver}-dark.png)"


def _picture(receiver: str, contract: Contract) -> Iterator[str]:
    if (PICTURES / f"{receiver}.png").is_file():
        yield from (
            "",
            f"![A new incident, about as {contract.name} shows it](pictures/{receiver}.png)",
        )
        yield from ("", f"Drawn from the body below; {contract.name} itself may show it otherwise.")


def _destination(receiver: str, contract: Contract) -> Iterator[str]:
    yield f"[destinations.{receiver}]"
    if contract.channel:
        yield f'plugin = "{contract.channel}"'
        yield f'template = "{receiver}"  # the default'
        yield from _settings(contract)
        return
    yield 'plugin = "webhook"'
    if contract.secret_url:
        yield f'url = {{ env = "{contract.secret_url}" }}  # {contract.url}'
    else:
        yield f'url = "{contract.url}"'
    yield f'secret = {{ file = "secrets/{receiver}" }}'
    yield f'template = "{receiver}"'
    if contract.headers:
        yield f"headers = {_references(contract.headers)}"
    if contract.body_secrets:
        yield f"body_secrets = {_references(contract.body_secrets)}"
    yield from _settings(contract)


def _settings(contract: Contract) -> Iterator[str]:
    yield from (f"{name} = {json.dumps(value)}" for name, value in contract.settings.items())


def _references(variables: Mapping[str, str]) -> str:
    given = ", ".join(f'{name} = {{ env = "{it}" }}' for name, it in variables.items())
    return f"{{ {given} }}"


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
    """Write every page, and the list."""
    listed = re.sub(r"(?<=\|---\|---\|---\|---\|\n)(\| `.*\n)+", rows(), LIST.read_text("utf-8"))
    LIST.write_text(listed, encoding="utf-8")
    PAGES.mkdir(exist_ok=True)
    for receiver in ALL:
        (PAGES / f"{receiver}.md").write_text(page(receiver), encoding="utf-8")


if __name__ == "__main__":
    main()
