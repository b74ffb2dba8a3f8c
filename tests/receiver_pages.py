"""Pages of receivers and their list; run `python tests/receiver_pages.py` to generate them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from http import HTTPStatus
from importlib.metadata import entry_points
from pathlib import Path

import tocsin_templates
from receiver_samples import ALERT
from tocsin.contracts import load_contract
from tocsin.delivery.rendering import Renderer
from tocsin.model import AnswerRules, Contract, Idempotency

ROOT = Path(__file__).parents[1]
LIST = ROOT / "docs/soar/receivers.md"
PAGES = ROOT / "docs/soar/receivers"
[FOLDER] = map(Path, tocsin_templates.tocsin_template_paths())
PICTURES = PAGES / "pictures"


ALL = sorted(path.name for path in FOLDER.iterdir() if path.is_dir() and path.name[0] not in "_.")
RECEIVERS = [name for name in ALL if (FOLDER / name / "body.schema.json").exists()]
"""Receivers with a JSON body."""
TRACKERS = {entry_point.load().receiver for entry_point in entry_points(group="tocsin.trackers")}
"""Receivers that the `ticketing` channel supports."""
_TWICE = {
    Idempotency.NATIVE: "The receiver recognizes duplicates by a key in the request.",
    Idempotency.SEARCH: "The channel searches for an existing object before it creates "
    "another one.",
    Idempotency.NONE: "Tocsin can send an event more than once, and the receiver does not "
    "recognize duplicates. To detect them, compare event IDs. The event ID is in the body and in "
    "the `webhook-id` header.",
}
_BY_WEBHOOK = (
    "A plain `webhook` destination creates a new object for each delivery, even if Tocsin sends "
    "the same event again."
)
_FORMATS = {"cloudevents", "email", "envelope", "ocsf"}
"""Templates for formats that are not specific to a receiver."""
_DOCUMENT = re.compile(r"docs/soar/([\w/-]+\.md)")
"""Page that a contract's note refers to."""
_TRIED = {
    "real": "This template was tested with the receiver itself.",
    "recording": "This template was tested with recorded responses of the receiver.",
    "simulator": "This template was tested with a simulator, not with the receiver itself.",
    "contract": "The request bodies that this template produces were validated [against a "
    "schema](../receivers.md#tests). The template was not tested with the receiver itself.",
}
_TRIED_EMAIL = (
    "This template was tested with a mail server (aiosmtpd), but not with common mail clients."
)


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
    """Return whether only the `ticketing` channel prevents duplicates."""
    return contract.channel is None and receiver in TRACKERS


def page(receiver: str) -> str:
    """Return the page of a receiver."""
    contract = load_contract([FOLDER], receiver)
    assert contract is not None
    return "\n".join(_lines(receiver, contract)) + "\n"


def _lines(receiver: str, contract: Contract) -> Iterator[str]:
    yield from (f"# {contract.name}", "")
    source = "this specification" if receiver in _FORMATS else "the receiver's documentation"
    documentation = f"[{source}]({contract.documentation})"
    setting = f'To use this receiver, set `template = "{receiver}"` in your destination.'
    yield f"{setting} The template follows {documentation}."
    yield from ("", "## Setup at the receiver", "")
    yield from (f"- {_DOCUMENT.sub(_link, note)}" for note in contract.notes)
    yield from ("", "## Configuration", "", "```toml", *_destination(receiver, contract), "```")
    if contract.channel:
        channel = f"[the `{contract.channel}` channel]({_channel_page(contract)})"
        yield from ("", f"This receiver requires {channel}. A plain `webhook` does not work.")
    yield from (
        "",
        "## Body",
        *_picture(receiver, contract),
        "",
        "Example for a new incident:",
        "",
        *_sent(receiver, contract),
    )
    if contract.channel is None:
        yield from ("", "## Responses", "", *_answers(contract))
    yield from ("", "## Duplicate events", "", _twice(receiver, contract))
    yield from (
        "",
        "## Tests",
        "",
        _TRIED_EMAIL if receiver == "email" else _TRIED[contract.tested],
    )


def _link(document: re.Match[str]) -> str:
    title = (PAGES.parent / document[1]).read_text(encoding="utf-8").partition("\n")[0]
    return f"[{title.removeprefix('# ')}](../{document[1]})"


def _channel_page(contract: Contract) -> str:
    name = f"{contract.channel}.md"
    pages = (f"../../operators/{name}", f"../{name}", f"../connectors/{name}")
    return next((candidate for candidate in pages if (PAGES / candidate).is_file()), pages[-1])


def _twice(receiver: str, contract: Contract) -> str:
    words = _TWICE[contract.idempotency]
    if _is_body_of_tracker(receiver, contract):
        channel = "[The `ticketing` channel](../ticketing.md) prevents duplicates"
        return f"{_BY_WEBHOOK} {channel}: {words[0].lower()}{words[1:]}"
    if "body" not in contract.parts:
        return words.replace("the `webhook-id` header", "an email header")
    return words if ALERT.id in _body(receiver) else words.replace("is in the body and", "is")


def _sent(receiver: str, contract: Contract) -> Iterator[str]:
    if "body" in contract.parts:
        yield from ("```json", _body(receiver), "```")
        return
    renderer = Renderer([FOLDER])
    for part in sorted({*contract.parts} - {"html"}):
        text = renderer.render(receiver, ALERT, part).decode()
        yield from (f"The {part}:", "", "```text", text, "```", "")
    yield from ("The HTML part:", "")
    yield f"![The email in light mode](pictures/{receiver}-light.png)"
    yield f"![The email in dark mode](pictures/{receiver}-dark.png)"


def _picture(receiver: str, contract: Contract) -> Iterator[str]:
    if (PICTURES / f"{receiver}.png").is_file():
        yield from (
            "",
            f"![A new incident in {contract.name}, approximately](pictures/{receiver}.png)",
        )
        shown = f"The picture shows approximately how {contract.name} displays the following body."
        yield from ("", shown)


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
    given = ", ".join(f'{name} = {{ env = "{variable}" }}' for name, variable in variables.items())
    return f"{{ {given} }}"


def _body(receiver: str) -> str:
    body = json.loads(Renderer([FOLDER]).render(receiver, ALERT))
    return json.dumps(body, indent=2, ensure_ascii=False)


def _answers(contract: Contract) -> Iterator[str]:
    answer = contract.answer
    if pointers := [*_pointers(answer)]:
        yield from (_explain(max(pointers, key=lambda pointer: pointer.count("/"))), "")
    yield f"- Success: {_success(answer)}."
    if answer.no_proof:
        yield f"- Meaning of a 2xx response: {answer.no_proof}"
    if answer.remote_id:
        stored = f"Tocsin stores the value at `{answer.remote_id}` as the delivery's remote ID"
        yield f"- Remote ID: {stored}, so that you can find the event in the receiver."
    if answer.known:
        yield (
            f"- Duplicate: a value at `{answer.known.pointer}` means that the receiver already has "
            "the event. Tocsin then counts the delivery as successful, whatever the status is."
        )
    if refused := [status for status in answer.permanent if status != HTTPStatus.GONE]:
        *others, last = map(str, refused)
        statuses = " or ".join([*filter(None, [", ".join(others)]), last])
        dead = "Tocsin marks the delivery as dead and does not retry it"
        yield f"- Status {statuses}: {dead}. After you fix the cause, you can replay the delivery."
    yield "- Any other response: see [Webhooks](../webhooks.md#responses)."


def _pointers(answer: AnswerRules) -> Iterator[str]:
    """Return the JSON Pointers that a page contains."""
    conditions = (condition.pointer for condition in answer.success)
    yield from filter(None, [*conditions, answer.event_id, answer.remote_id])


def _explain(pointer: str) -> str:
    *parents, last = (f"`{name}`" for name in pointer.split("/")[1:])
    field = " inside ".join([f"the {last} field", *reversed(parents)])
    field = field.replace("inside `0`", "of the first entry")
    return (
        "The following list uses [JSON Pointers](https://www.rfc-editor.org/rfc/rfc6901): for "
        f"example, `{pointer}` means {field} in the response's JSON body."
    )


def _success(answer: AnswerRules) -> str:
    conditions = [
        f"`{json.dumps(condition.equals)}` {_pointed(condition.pointer)}"
        for condition in answer.success
    ]
    if answer.text is not None:
        conditions.append(f"the text `{answer.text}` as its body")
    if answer.remote_id:
        conditions.append(f"a value at `{answer.remote_id}`")
    *others, last = [*map(str, answer.accepted)] or [""]
    success = " or ".join(filter(None, [", ".join(others), last]))
    if answer.event_id:
        kind = ", or any other" if success else "any"
        success += f"{kind} 2xx response with the event ID at `{answer.event_id}`"
    has_proof = bool(success)
    success = success or "any 2xx response"
    success += " with " + " and ".join(conditions) if conditions else ""
    if has_proof or conditions:
        both = answer.accepted and answer.event_id
        rest = "a 2xx response that meets neither condition" if both else "any other 2xx response"
        success += f". After {rest}, Tocsin retries the delivery"
    return success


def _pointed(pointer: str) -> str:
    return f"at `{pointer}`" if pointer else "as its body"


def main() -> None:
    """Write every page, and the list."""
    listed = re.sub(r"(?<=\|---\|---\|---\|---\|\n)(\| `.*\n)+", rows(), LIST.read_text("utf-8"))
    LIST.write_text(listed, encoding="utf-8")
    PAGES.mkdir(exist_ok=True)
    for receiver in ALL:
        (PAGES / f"{receiver}.md").write_text(page(receiver), encoding="utf-8")


if __name__ == "__main__":
    main()
