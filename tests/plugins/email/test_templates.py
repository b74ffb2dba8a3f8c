"""What the shipped templates make of events, whatever others have written in them."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from receiver_events import NOW, RENDERER, make, written
from receiver_pages import FOLDER
from receiver_samples import ALERT, SAMPLES
from tocsin import EventType
from tocsin.contracts import find_all_violations
from tocsin.delivery.destinations.samples import build_sample
from tocsin.delivery.rendering import Renderer
from tocsin_plugins.email.composer import BEGIN, END

PARTS = ("subject", "text", "html")
every_event = pytest.mark.parametrize("kind", list(EventType))
HOSTILE = [
    "</p></div><script>alert(1)</script><img src=x onerror=alert(1)>",
    '" onmouseover="alert(1)" style="background:url(//evil.example/x)',
    "<!-- /event --><!-- event -->",
    "line one\nline two\r\n\ttabbed\x00\x1b[31m",
    "{{ 7 * 7 }}{% raw %}${jndi:ldap://x}",
    "\u202egnp.exe \u2066abc\u2069",
    "javascript:alert(1)",
    "http://evil.example/x www.evil.example a@evil.example",
    "\ud800 alone",
    "",
    " ",
]


def render(event, renderer=RENDERER) -> dict[str, bytes]:
    """Return all parts, having held them against the contract."""
    rendered = {part: renderer.render("email", event, part) for part in PARTS}
    contract = renderer.contract("email")
    assert contract.parts == PARTS
    assert find_all_violations(contract, rendered) == []
    return rendered


class Page(HTMLParser):
    """The tags of a page, its links, and its text."""

    def __init__(self, html: bytes) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: set[str] = set()
        self.links: list[str] = []
        self.text = ""
        self.feed(html.decode())
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes |= {name for name, _ in attrs}
        self.links += [value for name, value in attrs if name == "href"]

    def handle_data(self, data):
        self.text += data


def expect_harmless(html: bytes) -> Page:
    """Nothing is run and nothing is fetched, and each link leads to where its words say."""
    page = Page(html)
    assert not {"script", "img", "link", "iframe", "form", "object", "svg", "base"} & set(page.tags)
    assert not {"src", "srcset", "background", "action"} & page.attributes
    assert not any(name.startswith("on") for name in page.attributes)
    assert all(link.startswith(("https://tocsin.example", "https://siem.")) for link in page.links)
    assert "url(" not in "".join(re.findall(r'style="([^"]*)"', html.decode()))
    assert html.count(BEGIN.encode()) == html.count(END.encode()) == 1
    return page


@every_event
def test_every_event_is_told_in_every_part(kind):
    event = build_sample(kind, "https://tocsin.example", NOW)
    parts = render(event)
    for part in ("text", "html"):
        assert event.id.encode() in parts[part]
        assert event.data["url"].encode() in parts[part]
    assert len(parts["subject"].splitlines()) == 1
    expect_harmless(parts["html"])


@every_event
def test_what_is_missing_beside_the_event_is_missed_by_nobody(kind):
    render(make(kind, context={}))


@every_event
@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_stays_text(kind, text):
    page = expect_harmless(render(written(kind, text))["html"])
    plain = expect_harmless(render(written(kind, "harmless"))["html"])
    assert set(page.tags) <= set(plain.tags)
    assert len(page.tags) <= len(plain.tags)
    assert "&lt;" not in page.text  # what is escaped is escaped once


texts = st.text(max_size=300)


@given(st.sampled_from(list(EventType)), texts)
def test_whatever_an_event_holds_a_mail_comes_of_it(kind, text):
    expect_harmless(render(written(kind, text))["html"])


@every_event
def test_what_is_too_long_is_shortened_and_the_link_stays(kind):
    event = written(
        kind, "long " * 20_000, [f"host-{number}.example.com" for number in range(1_000)]
    )
    parts = render(event)
    assert len(parts["subject"]) < 250
    for part in ("text", "html"):
        assert event.data["url"].encode() in parts[part]
    if kind in (EventType.INCIDENT_ALERT, EventType.INVESTIGATION_COMPLETED):
        assert b"and 160 more" in parts["text"]


@every_event
@pytest.mark.parametrize("text", ["http://evil.example/x", "www.evil.example", "a@evil.example"])
def test_no_reader_makes_a_link_of_what_others_wrote(kind, text):
    parts = render(written(kind, text))
    page = Page(parts["html"])
    links = "|".join(map(re.escape, page.links))
    for shown in (parts["text"].decode(), page.text):
        others = re.sub(links, "", shown) if links else shown
        assert not re.search(r"http://|evil\.example|@evil", others), others


def test_a_link_that_is_none_is_left_out():
    for url in ("javascript:alert(1)", "/incidents/7", "data:text/html,x"):
        event = make(EventType.INCIDENT_ALERT, url=url, context={"incident": {"source_url": url}})
        page = Page(render(event)["html"])
        assert page.links == []


def test_the_siems_link_says_where_it_leads():
    page = Page(render(ALERT)["html"])
    assert page.links[1] == "https://siem.example.com/incidents/b3a1"
    assert "Open on siem.example.com" in page.text


def test_subjects_say_first_how_bad_it_is():
    subjects = [render(event)["subject"].decode() for event in SAMPLES]
    assert subjects == [
        "[High] Many failed sign-ins, then one that succeeded (incident 4711)",
        "[Risk 71.6] New external logins in the last 24 hours",
        "Scheduled investigation failed: nightly-hunt",
        "Schedule disabled: nightly-hunt",
    ]


@pytest.mark.parametrize("part", PARTS)
def test_an_operator_builds_on_what_ships(tmp_path, part):
    suffix = {"subject": "subject.txt", "text": "txt", "html": "html"}[part]
    (tmp_path / "email").mkdir()
    (tmp_path / "email" / f"incident-alert.{suffix}.j2").write_text(
        f'{{% extends "shipped/email/incident-alert.{suffix}.j2" %}}'
        '{% block title %}{{ "[SOC] " ~ event.data.title }}{% endblock %}',
        encoding="utf-8",
    )
    rendered = render(make(EventType.INCIDENT_ALERT, title="x"), Renderer([FOLDER], tmp_path))
    assert b"[SOC] x" in rendered[part]


def luminance(colour: str) -> float:
    """WCAG 2.2, relative luminance."""
    shares = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [
        share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4 for share in shares
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    lighter, darker = sorted((luminance(one), luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


@pytest.mark.parametrize("severity", ["Critical", "High", "Medium", "Low", "Informational"])
def test_all_of_it_can_be_read_in_the_light_and_in_the_dark(severity):
    html = render(make(EventType.INCIDENT_ALERT, severity=severity))["html"].decode()
    [badge] = re.findall(r"border-radius:10px;background:(#\w{6});color:(#\w{6})", html)
    by_day, by_night = html.split("@media (prefers-color-scheme: dark)")
    pairs = [badge, ("#1f2933", "#ffffff"), ("#5b6673", "#ffffff"), ("#5b6673", "#f3f4f6")]
    pairs += [("#111827", "#ffffff"), ("#1d4ed8", "#ffffff")]
    assert all(colour in by_day + by_night for pair in pairs for colour in pair)
    night = dict(re.findall(r"\.(\w+) \{[^}]*?(?<!-)color: (#\w{6})", by_night))
    pairs += [(night[name], "#161b22") for name in ("card", "strong", "quiet", "second")]
    pairs.append(("#ffffff", "#1f6feb"))
    assert min(contrast(*pair) for pair in pairs) >= 4.5  # WCAG 2.2, 1.4.3
