"""Slack's errors for the blocks of a message, and the mentions that its text would cause."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from typing import Any

from slack_sdk.errors import SlackObjectFormationError
from slack_sdk.models.blocks import Block

MOST_BLOCKS = 50
LONGEST_FIELD = 2_000
LONGEST_IN_ALL = 11_000
"""Slack names no limit for all blocks together; 11,341 characters are the fewest that it is known
to have refused (https://github.com/slackapi/bolt-js/issues/2867)."""

_COMMAND = re.compile(r"<([!@#][^>]*)>")
_BY_NAME = re.compile(r"@(here|channel|everyone)\b")


def judge(blocks: Any) -> tuple[str, list[str]] | None:
    """Return the error that Slack returns for blocks, and its details; None if they are valid.

    https://docs.slack.dev/reference/block-kit, by the models of Slack's own SDK, and what these
    leave out.
    """
    if not isinstance(blocks, list) or not all(isinstance(block, dict) for block in blocks):
        return "invalid_blocks_format", []
    if details := list(_breaches(blocks)):
        return "invalid_blocks", details
    if sum(len(object_["text"]) for object_ in text_objects(blocks)) > LONGEST_IN_ALL:
        return "msg_blocks_too_long", []
    return None


def _breaches(blocks: list[dict[str, Any]]) -> Iterator[str]:
    if len(blocks) > MOST_BLOCKS:
        yield f"no more than {MOST_BLOCKS} items allowed [json-pointer:/blocks]"
    for number, block in enumerate(blocks):
        for breach in _of_block(block):
            yield f"{breach} [json-pointer:/blocks/{number}]"


def _of_block(block: dict[str, Any]) -> Iterator[str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        parsed = Block.parse(block)
    if parsed is None:
        yield f"unsupported type: {block.get('type')}"
        return
    try:
        understood = parsed.to_dict()
    except SlackObjectFormationError as error:
        yield str(error)
        return
    if understood != block:
        yield "it has members that such a block has not"
    yield from _of_texts(block)


def _of_texts(block: dict[str, Any]) -> Iterator[str]:
    for text in text_objects(block):
        if not text["text"]:
            yield "must be more than 0 characters"
    for field in block.get("fields", ()):
        if len(field["text"]) > LONGEST_FIELD:
            yield f"must be less than {LONGEST_FIELD + 1} characters"
    if block["type"] == "header" and block["text"]["type"] != "plain_text":
        yield "a header takes plain_text alone"


def text_objects(value: Any) -> Iterator[dict[str, Any]]:
    """Yield every text object, at any depth."""
    if isinstance(value, dict):
        if value.get("type") in ("plain_text", "mrkdwn") and isinstance(value.get("text"), str):
            yield value
        for member in value.values():
            yield from text_objects(member)
    elif isinstance(value, list):
        for member in value:
            yield from text_objects(member)


def calls(message: dict[str, Any]) -> set[str]:
    """Return the people that a message mentions and the channels that it links.

    https://docs.slack.dev/messaging/formatting-message-text
    """
    marked = [
        object_["text"]
        for object_ in text_objects(message.get("blocks"))
        if object_["type"] == "mrkdwn"
    ]
    texts = [message.get("text") or "", *marked]
    found = {command for text in texts for command in _COMMAND.findall(text)}
    if message.get("link_names") or message.get("parse") not in (None, "none"):
        found |= {name for text in texts for name in _BY_NAME.findall(text)}
    return {command for command in found if not command.startswith("!date^")}
