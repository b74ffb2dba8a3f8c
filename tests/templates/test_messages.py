"""Chat and on-call messages: no mentions, links or formatting by untrusted text."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import pytest
from markdown_it import MarkdownIt
from slack_sdk.models.blocks import Block

from receiver_events import RENDERER, check, make, written
from receiver_samples import ALERT, COMPLETED, DISABLED, FAILED, SAMPLES
from tocsin import Event, EventType, defang

every_event = pytest.mark.parametrize("kind", list(EventType))
MARKDOWN = MarkdownIt("js-default", {"html": False, "linkify": True})
WRITTEN = [
    "<!channel> <!here|here> <@U012AB3CD> <users/all> <at>everyone</at> <@&123> @everyone",
    "@channel @here @all .@all -@here j.doe@example.com <!all>",
    "[click](https://evil.example) ![x](https://evil.example/x.png) <https://evil.example|here>",
    "https://evil.example/a?b=c www.evil.example evil.example/path HTTP://EVIL.EXAMPLE mailto:a@b",
    "**bold** _slanted_ ~~gone~~ `code` ||spoiler|| # heading",
    "> quoted\n- item\n1. first\n```\nfence\n```\n# heading\n| a | b |\n| - | - |",
    "{{DATE(2026-11-21T06:08:00Z, SHORT)}} ${title} &lt;!channel&gt; &amp; \\",
    "a`b``c `<!channel>` `@channel`",
    "<b>bold</b> <a href='https://evil.example'>here</a> <font color='red'>x</font>",
]


def by_others(kind: EventType, text: str, values: list[str] | None = None) -> Event:
    """Return an event with this text wherever others write; providers are named by operators."""
    event = written(kind, text, values)
    return replace(event, data={**event.data, "provider": "cloud"})


def render(receiver: str, event: Any) -> Any:
    return json.loads(RENDERER.render(receiver, event))


def strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for member in value.values():
            yield from strings(member)
    elif isinstance(value, list):
        for item in value:
            yield from strings(item)


def shown(text: str, markdown: MarkdownIt = MARKDOWN) -> str:
    """Return what Markdown leaves of a text; it must neither format nor link anything."""
    tokens = markdown.parse(text)
    inline = [child for token in tokens for child in token.children or ()]
    kinds = {token.type for token in (*tokens, *inline)}
    assert kinds <= {"paragraph_open", "paragraph_close", "inline", "text", "text_special"} | {
        "softbreak"
    }
    return "".join("\n" if token.type == "softbreak" else token.content for token in inline)


def spans(text: str) -> str:
    """Return what stands outside of the code spans of a text."""
    assert text.count("`") % 2 == 0
    return re.sub(r"`[^`\n]+`", "", text)


# --- Slack


@every_event
def test_slack_is_sent_links_to_tocsin_and_the_siem_alone(kind):
    for text in WRITTEN:
        body = check("slack", by_others(kind, text))
        for block, parsed in zip(body["blocks"], Block.parse_all(body["blocks"]), strict=True):
            assert parsed.to_dict() == block, "as Slack's SDK understands it, with its limits"
        marked = [text["text"] for text in texts(body) if text["type"] == "mrkdwn"]
        found = re.findall(r"<([^>]*)>", " ".join([body["text"], *marked]))
        assert all(
            re.fullmatch(r"https?://[^|<>]+\|Open in (Tocsin|the SIEM)", link) for link in found
        )
        for link in marked:
            rest = re.sub(r"(?m)^\*[\w -]+\*|<[^>]*>", "", spans(link))
            assert not re.search(r"[*_~]", rest)


def texts(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        if value.get("type") in ("mrkdwn", "plain_text"):
            yield value
        value = list(value.values())
    for item in value if isinstance(value, list) else ():
        yield from texts(item)


def test_slack_is_named_no_channel():
    assert set(render("slack", ALERT)) == {"text", "blocks", "unfurl_links", "unfurl_media"}


# --- Discord

DISCORD = MarkdownIt("js-default", {"html": False, "linkify": True}).disable("entity")
"""Close to what Discord does, which knows no entities either."""


@every_event
def test_discord_shows_what_was_written_as_it_is(kind):
    for text in WRITTEN:
        body = check("discord", by_others(kind, text))
        [embed] = body["embeds"]
        assert body["allowed_mentions"] == {"parse": []}
        assert " ".join(text.split())[:20] in shown(embed["title"], DISCORD)
        if "description" in embed:
            assert shown(embed["description"], DISCORD).split()[: len(text.split())] == text.split()
        for field in embed["fields"]:
            rest = spans(field["value"])
            assert not re.search(r"[@<]|https?:", rest) or field["name"] == "Open in"


@every_event
@pytest.mark.parametrize("letter", ["x", "*", "\U0001f6a8"])
def test_an_embed_is_never_longer_than_discord_takes(kind, letter):
    event = by_others(kind, letter * 10_000, [letter * 500] * 300)
    [embed] = check("discord", event)["embeds"]
    counted = [embed["title"], embed.get("description", ""), embed["author"]["name"]]
    counted += [embed["footer"]["text"]]
    counted += [text for field_ in embed["fields"] for text in (field_["name"], field_["value"])]
    assert sum(map(len, counted)) <= 6_000


# --- Mattermost


def rewritten(text: str) -> str:
    """Return what a server makes of a text that came by a webhook, for the sake of Slack's users.

    In mattermost/mattermost: server/channels/app/slack.go and public/model/slack_attachment.go.
    """
    text = re.sub(r"<!(channel|here|all)>", r"@\1", text)
    return re.sub(r"<([^<|]+)\|([^>]+)>", r"[\2](\1)", text)


def mentioned(text: str) -> set[str]:
    """Return whom it notifies of a text: server/channels/app/mention_parser_standard.go there."""
    words = re.split(r"[^\w:.@-]+", text)
    return {mention for word in words for mention in re.findall(r"(?:^|[:.\-_])(@\w+)", word)}


@every_event
def test_mattermost_neither_notifies_nor_links(kind):
    for text in WRITTEN:
        [attachment] = check("mattermost", by_others(kind, text))["attachments"]
        assert attachment["title_link"], "which has the title shown as it is"
        left = shown(rewritten(attachment["text"]))
        assert mentioned(left) == set()
        assert left.replace("[@]", "@").split() == text.split()
        for field in attachment["fields"]:
            rest = spans(field["value"])
            assert mentioned(rest) == set()
            assert "<" not in rest
            assert field["title"] == "Open in" or "://" not in rest


def test_the_tests_know_a_mention_when_they_see_one():
    assert mentioned("hey @channel") == mentioned("x.@channel") == {"@channel"}
    assert mentioned("j.doe@example.com [@]channel") == set()


# --- Microsoft Teams


@every_event
def test_teams_is_sent_text_that_knows_no_markup(kind):
    for text in WRITTEN:
        [attachment] = check("teams", by_others(kind, text))["attachments"]
        card = attachment["content"]
        assert "entities" not in card["msteams"], "which mentions are made of"
        assert not any(re.search(r"\w://", string) for string in strings(card["body"]))
        assert {action["url"].split("/")[2] for action in card["actions"]} <= {
            "tocsin.example",
            "siem.example",
        }


# --- Google Chat


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.text = ""

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.add(tag)

    def handle_data(self, data: str) -> None:
        self.text += data


@every_event
def test_google_chat_is_sent_no_tags_of_others_and_no_text_that_mentions(kind):
    for text in WRITTEN:
        body = check("google-chat", by_others(kind, text))
        assert set(body) == {"fallbackText", "thread", "cardsV2"}
        tags = Tags()
        for section in body["cardsV2"][0]["card"]["sections"]:
            for widget in section["widgets"]:
                tags.feed(widget.get("textParagraph", {}).get("text", ""))
        assert tags.tags <= {"b", "br", "font"}
        assert not re.search(r"\w://", tags.text)
        assert defang(" ".join(text.split()))[:20] in tags.text


def test_what_happens_to_a_schedule_is_one_thread():
    failed, disabled = (render("google-chat", event)["thread"] for event in (FAILED, DISABLED))
    assert failed == disabled != render("google-chat", ALERT)["thread"]


# --- on call


def test_a_completed_run_resolves_what_failed_ones_opened():
    bodies = [render("pagerduty", event) for event in (FAILED, DISABLED, COMPLETED, ALERT)]
    assert [body["event_action"] for body in bodies] == ["trigger", "trigger", "resolve", "trigger"]
    keys = [body["dedup_key"] for body in bodies]
    assert keys[0] == keys[1] == keys[2] != keys[3]


@pytest.mark.parametrize("receiver", ["pagerduty", "opsgenie"])
@every_event
def test_on_call_is_sent_no_links_or_tags_of_others(receiver, kind):
    for text in WRITTEN:
        for string in strings(check(receiver, by_others(kind, text))):
            links = re.sub(r"https://(tocsin|siem)\.example/\S*", "", string)
            assert not re.search(r"\w://", links)
            assert not (receiver == "opsgenie" and re.search(r"<|>", string))


# --- all of them


MESSAGES = ["discord", "google-chat", "mattermost", "opsgenie", "pagerduty", "slack", "teams"]


@pytest.mark.parametrize("receiver", MESSAGES)
def test_a_message_has_what_an_analyst_looks_for(receiver):
    told = json.dumps(render(receiver, ALERT), ensure_ascii=False).replace("\\", "")
    for word in ("Many failed sign-ins", "4711", "cloud", "New", "2026-11-21 05:20", "T1110.003"):
        assert word in told
    for word in ("High", "203.0.113.7", "j.doe", "1024", ALERT.context["incident"]["source_url"]):
        assert word in told


@pytest.mark.parametrize("receiver", MESSAGES)
def test_a_completed_investigation_tells_score_verdict_summary_and_counts(receiver):
    told = json.dumps(render(receiver, COMPLETED), ensure_ascii=False).replace("\\", "")
    for word in ("72 of 100", "uspicious, confidence medium", "3 accounts", "3 findings", "1 gap"):
        assert word in told


@pytest.mark.parametrize("receiver", MESSAGES)
def test_failures_tell_the_error_how_many_and_what_to_do(receiver):
    failed, disabled = (json.dumps(render(receiver, event)) for event in (FAILED, DISABLED))
    for told, count in ((failed, "3 failures in a row"), (disabled, "5 failures in a row")):
        assert count in told
        assert "every provider that the question needs is away" in told
        assert re.search(r"nightly\W{0,3}hunt", told)
    assert "2026-11-22 02:00" in failed
    assert "enable the schedule" in disabled


@pytest.mark.parametrize("receiver", MESSAGES)
def test_ten_entities_are_named_and_the_others_counted(receiver):
    entities = [{"kind": "host", "value": f"host-{number:02}"} for number in range(25)]
    incident = {**ALERT.context["incident"], "entities": entities}
    told = json.dumps(render(receiver, replace(ALERT, context={"incident": incident})))
    assert len(set(re.findall(r"host-\d+", told))) == 10
    assert "15 more" in told


@pytest.mark.parametrize("receiver", MESSAGES)
@pytest.mark.parametrize(
    "url", ["javascript:alert(1)", "https://x.example/" + "y" * 5_000, "", None, "ftp://x.example/"]
)
def test_an_address_that_is_none_is_left_out(receiver, url):
    incident = {**ALERT.context["incident"], "source_url": url}
    told = render(receiver, replace(ALERT, context={"incident": incident}))
    assert not any(
        "SIEM](" in string or "open in the siem" in string.lower() for string in strings(told)
    )


@pytest.mark.parametrize("receiver", MESSAGES)
def test_an_address_cannot_leave_its_place(receiver):
    url = 'https://siem.example.com/a b|c>d)e]f"g`h\\i<j'
    incident = {**ALERT.context["incident"], "source_url": url}
    told = list(strings(check(receiver, replace(ALERT, context={"incident": incident}))))
    assert any("a%20b%7Cc%3Ed%29e%5Df%22g%60h%5Ci%3Cj" in body for body in told)


@pytest.mark.parametrize("receiver", MESSAGES)
def test_no_text_turns_the_direction_of_what_follows(receiver):
    for kind in EventType:
        told = json.dumps(check(receiver, by_others(kind, "\u202egnp.exe \u2066abc")))
        assert "\\u202e" not in told
        assert "\\u2066" not in told


@pytest.mark.parametrize("receiver", MESSAGES)
def test_samples_of_the_pages_are_taken(receiver):
    for event in SAMPLES:
        check(receiver, event)


# --- All


@pytest.mark.parametrize(
    "receiver", ["email", "google-chat", "jira", "opsgenie", "pagerduty", "rt", "teams"]
)
def test_addresses_are_defanged_in_one_style(receiver):
    event = by_others(EventType.INCIDENT_ALERT, "see https://evil.example/a from 203.0.113.9")
    rendered = RENDERER.render(receiver, event, part="text" if receiver == "email" else "body")
    assert "see hxxps[://]evil[.]example/a from 203.0.113.9" in rendered.decode()


def test_tactics_and_techniques_of_an_incident_are_told():
    context = {"incident": {"tactics": ["TA0006", "TA0109"], "techniques": ["T1110.003"]}}
    usual = make(EventType.INCIDENT_ALERT).context["incident"]
    event = make(EventType.INCIDENT_ALERT, {"incident": {**usual, **context["incident"]}})
    assert check("ocsf", event)["finding_info"]["attacks"] == [
        {"tactic": {"uid": "TA0006", "name": "Credential Access"}},
        {"tactic": {"uid": "TA0109", "name": "TA0109"}},
        {"technique": {"uid": "T1110.003"}},
    ]
    assert "Credential Access, TA0109" in str(check("slack", event))
