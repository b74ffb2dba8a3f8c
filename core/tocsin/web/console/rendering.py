"""Template environment, filters and assets."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import cache, lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import quote

import orjson
from aiohttp import web
from jinja2 import (
    ChoiceLoader,
    Environment,
    FileSystemLoader,
    PackageLoader,
    PrefixLoader,
    StrictUndefined,
)
from markupsafe import Markup, escape

from tocsin.clock import isoformat
from tocsin.model import name_tactic
from tocsin.reports import format_time
from tocsin.web.console.forms import to_field
from tocsin.web.console.sessions import FORM_TOKEN, ONCE

_HERE = Path(__file__).parent
_ASSETS = {"console.css": "text/css"} | dict.fromkeys(
    ("console.js", "keys.js", "passkeys.js", "graph.js", "d3-force.js"), "text/javascript"
)
# All resources are local, and inline scripts and styles are blocked
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
LABELS = {
    "arrived": "delivered",
    "later": "retry later",
    "pending": "waiting",
}
"""Words of the API with another label in the console."""
_SUBJECT_PAGES = {
    "incident": "/incidents/",
    "session": "/investigations/",
    "schedule": "/schedules/",
}
_WORD = re.compile(r"[^a-z0-9]+")
_CODE = re.compile(r"`([^`]+)`")
_UNITS = (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1))


def respond(template: str, context: Mapping[str, Any], status: int = 200) -> web.Response:
    """Return the response for a page."""
    html = _environment().get_template(template).render(context)
    headers = {"Content-Security-Policy": _POLICY, "Cache-Control": "no-store"}
    return web.Response(
        text=html, status=status, headers=headers, content_type="text/html", charset="utf-8"
    )


def fragment(template: str, context: Mapping[str, Any]) -> str:
    """Render the block `content` of a page, which live updates replace."""
    found = _environment().get_template(template)
    return "".join(found.blocks["content"](found.new_context(dict(context))))


async def get_asset(request: web.Request) -> web.Response:
    """Serve a style sheet or a script; its address changes with its content."""
    name = request.match_info["name"]
    if name not in _ASSETS:
        raise web.HTTPNotFound
    content, digest = _asset(name)
    is_current = request.query.get("v") == digest
    lasting = "public, max-age=31536000, immutable" if is_current else "no-cache"
    headers = {"Cache-Control": lasting}
    return web.Response(body=content, headers=headers, content_type=_ASSETS[name], charset="utf-8")


@cache
def _asset(name: str) -> tuple[bytes, str]:
    content = (_HERE / "assets" / name).read_bytes()
    return content, sha256(content).hexdigest()[:12]


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=ChoiceLoader(
            [
                FileSystemLoader(_HERE / "templates"),
                PrefixLoader({"reports": PackageLoader("tocsin.reports")}),  # for their diagrams
            ]
        ),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    environment.filters |= {
        "moment": _moment,
        "tactic": name_tactic,
        "to_field": to_field,
        "lasting": _lasting,
        "pretty": _pretty,
        "slug": _slug,
        "label": _label,
        "count": _count,
        "web_link": _web_link,
        "subject_page": _subject_page,
        "coded": _coded,
        "readable": _readable,
        "health": _health,
    }
    environment.globals |= {"asset": _address, "FORM_TOKEN": FORM_TOKEN, "ONCE": ONCE}
    return environment


def _address(name: str) -> str:
    return f"/console/{name}?v={_asset(name)[1]}"


def _moment(value: datetime | str | None) -> Markup:
    """Return a time in UTC, which a script converts to the browser's time zone."""
    if value is None:
        return Markup('<span class="faint">-</span>')
    try:
        moment = value if isinstance(value, datetime) else datetime.fromisoformat(value)
        text, shown = isoformat(moment), format_time(moment)
    except (ValueError, OverflowError):  # it only looks like a time
        return escape(value)
    return Markup(f'<time datetime="{text}">{shown}</time>')  # noqa: S704 - both are made here


def _lasting(value: timedelta | float | None) -> str:
    """Return a duration in its two largest units."""
    if value is None:
        return "-"
    left = round(value.total_seconds() if isinstance(value, timedelta) else value)
    parts: list[str] = []
    for name, size in _UNITS:
        amount, left = divmod(left, size)
        if amount or parts:
            parts.append(f"{amount} {name}")
    return " ".join(parts[:2]) or "0 s"


def _pretty(value: object) -> str:
    return orjson.dumps(value, option=orjson.OPT_INDENT_2).decode()


def _readable(text: str) -> str:
    """Return indented JSON; return other text unchanged."""
    try:
        return _pretty(orjson.loads(text))
    except (
        orjson.JSONDecodeError,
        orjson.JSONEncodeError,
    ):  # the latter for JSON that is nested too deeply
        return text


@lru_cache(maxsize=1_000)
def _slug(text: object) -> str:
    """Return the CSS class suffix for a word of a vocabulary."""
    return _WORD.sub("-", str(text).lower()).strip("-")


@lru_cache(maxsize=1_000)
def _label(word: object) -> str:
    """Return a word of a vocabulary as the console shows it."""
    text = str(word)
    return LABELS.get(text, text.replace("_", " ").replace("-", " "))


def _count(value: int) -> str:
    return f"{value:,}"


def _health(destination: Mapping[str, Any]) -> str:
    """Return the state of a destination, or `failing` if it is active but its receiver fails."""
    is_failing = destination["state"] == "active" and destination["failing_since"] is not None
    return "failing" if is_failing else str(destination["state"])


def _coded(text: str) -> Markup:
    """Return a text with the parts between backticks as code."""
    return Markup(_CODE.sub(r"<code>\1</code>", str(escape(text))))  # noqa: S704 - escaped


def _subject_page(subject: str) -> str | None:
    """Return the page of an event's subject, None if there is none."""
    kind, _, identifier = subject.partition(":")
    page = _SUBJECT_PAGES.get(kind)
    return page + quote(identifier, safe="") if page and identifier else None


def _web_link(value: str | None) -> str | None:
    """Return an HTTP or HTTPS address, None for any other kind."""
    return value if value and value.lower().startswith(("https://", "http://")) else None
