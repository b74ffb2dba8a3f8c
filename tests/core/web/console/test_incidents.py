"""Incidents as a person sees them, with all that came of them and what can be done."""

from __future__ import annotations

import re
from copy import copy
from dataclasses import replace
from datetime import timedelta
from html import unescape
from urllib.parse import unquote

import pytest
from aiohttp import FormData
from aiohttp.test_utils import TestClient, TestServer
from sqlalchemy import select, update
from yarl import URL

from api_callers import INCIDENTS, Caller
from api_server import PUSH_TOKEN, PUSHED
from console import Person, text_of
from delivery_rows import add_delivery, add_destination, add_event
from graph_rows import Graph, incident
from incident_rows import add_incidents, change_incident
from session_rows import add_session
from tocsin import Broken, Disposition, Enricher, Enrichment, EntityKind, Marking
from tocsin.accounting import MAX_CHANGES
from tocsin.enrichment import Enrichers, IncidentEnricher
from tocsin.events import RESTORED, hold_unrouted_events
from tocsin.incidents import ProviderFacts
from tocsin.investigations.write_backs import plan_write_backs
from tocsin.model import ChangeType, Node, NodeKind, RelationType
from tocsin.observables import Environment
from tocsin.store.tables import attempts, events, sessions, write_backs
from tocsin.testing import loopback_client, make_tools
from tocsin.web import make_app

pytestmark = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)

HOSTILE = "<script>alert(1)</script> \"' {{ 7*7 }}"
REMOVE = "\N{MULTIPLICATION SIGN}"
ENTITIES = [("ip", "203.0.113.9"), ("url", "https://evil.example/?a=1&b=<i>"), ("user", "ana")]


@pytest.fixture
def store(api):
    """Return what stores incidents, and returns the number of the last one."""

    async def store(**values) -> int:
        numbers = await api.services.database.write(add_incidents, **values)
        return numbers[-1]

    return store


async def test_without_incidents_the_list_says_what_to_look_at(person):
    assert "No incidents yet." in await person.text("/incidents")
    assert "No incidents match these filters." in await person.text("/incidents?severity=High")


async def test_an_incident_by_itself_says_what_would_be_related_to_it(person, store):
    page = f"/incidents/{await store()}"
    text = await person.text(page)
    assert "Incidents appear here if they share entities with this one" in text
    assert "To link one, enter its number in Link incidents." in text
    await person.sign_in("viewer")
    text = await person.text(page)
    assert "Link incidents" not in text
    for words in ("No comments yet. To add one", "No investigations yet. To start one"):
        assert f"{words}, you need the analyst role." in text


async def test_the_list_tells_of_each_incident_and_leads_to_it(person, store):
    number = await store(title="Odd sign-in", entities=ENTITIES)
    html = await person.html("/incidents")
    assert f'href="/incidents/{number}"' in html
    text = await person.text("/incidents")
    for words in ("Odd sign-in", "sensors", "High", "New", f"#{number}"):
        assert words in text


async def test_an_admin_triages_by_forms_without_scripts(api, person, store):
    first, number = await store(), await store(title="Odd sign-in")
    page = f"/incidents/{number}"
    assert "No comments yet." in await person.text(page)
    for form, fields, words in (
        ("assign", {"assignee": "ben"}, "Assignee ben"),
        ("acknowledge", {"acknowledged": "true"}, "Acknowledged ana"),
        (
            "classify",
            {"disposition": "false-positive", "disposition_reason": HOSTILE},
            "false positive by ana (person)",
        ),
        (
            "label",
            {"add_tags": "VIP, pentest", "add_links": f"#{first}"},
            f"pentest {REMOVE} vip {REMOVE} Linked incidents #{first}",
        ),
        ("label", {"remove_tags": "vip"}, f"Tags pentest {REMOVE} Linked"),
        ("comment", {"text": HOSTILE}, HOSTILE),
    ):
        assert words in await person.submit(page, f"{page}/{form}", **fields)
    html = await person.html(page)
    assert "<script>alert(1)" not in html
    text = await person.text("/incidents?assignee=ben&disposition=false-positive&tag=vip")
    assert "No incidents match these filters." in text
    text = await person.text("/incidents?assignee=ben&disposition=false-positive&acknowledged=true")
    assert "Odd sign-in" in text
    assert "false positive" in text
    refused = await person.submit(page, f"{page}/label", 422, add_links="99")
    assert "There is no incident 99." in refused
    await person.submit(page, f"{page}/classify", disposition="")
    assert "Disposition none" in await person.text(page)


async def test_incidents_are_triaged_together_in_the_list(api, person, store):
    numbers = [await store() for _ in range(3)]
    view = "/incidents?status=New"
    fields = {"disposition": "duplicate", "disposition_reason": "as #1", "number": "99"}
    answer = await person.submit(view, "/incidents/triage?status=New", **fields)
    assert "0 of 1 selected incident updated. #99: not found" in answer
    html = await person.html(view)
    token = re.findall(r'name="form_token" value="([^"]+)"', html)[0]
    fields = [("form_token", token), ("assignee_me", "ana"), ("add_tags", "VIP, scan")]
    fields += [("number", str(number)) for number in numbers[1:]]
    headers = {"Cookie": person.cookie}
    response = await api.client.post(
        "/incidents/triage?status=New",
        data=FormData(fields),
        headers=headers,
        allow_redirects=False,
    )
    assert response.status == 303
    place = URL(response.headers["Location"])
    assert (place.path, place.query["status"]) == ("/incidents", "New")
    html = await person.html(str(place))
    assert 'data-live="' in html
    assert "2 of 2 selected incidents updated." in text_of(html)
    assert re.search(r'role="status" tabindex="-1" autofocus><p>2 of 2 selected', html)
    assert "Clear filters" in text_of(html)
    text = await person.submit(
        view, "/incidents/triage?status=New", number=str(numbers[1]), assignee="ana"
    )
    assert "0 of 1 selected incident updated. 1 already had these values." in text
    assert "updated." not in await person.text(f"{view}&updated=many&unchanged=0")
    analyst = Caller(api, await api.analyst())
    found = [(await analyst.read(f"/api/v1/incidents/{n}"))["triage"] for n in numbers]
    assert found[0] is None
    assert [(each["assignee"], each["tags"]) for each in found[1:]] == [
        ("ana", ["scan", "vip"])
    ] * 2
    text = await person.submit(view, "/incidents/triage?status=New", 422, assignee="ana")
    assert "numbers" in text


@pytest.mark.parametrize("path", ["/incidents", "/quarantine", "/detections", "/investigations"])
async def test_filters_show_names_of_providers_unchanged(api, person, path):
    api.services.providers = (ProviderFacts("our-scripts", "push", frozenset()),)
    assert '<option value="our-scripts">our-scripts</option>' in await person.html(path)


async def test_views_and_orders_are_links_that_keep_over_pages(person, store):
    await store(count=51, severity="Low")
    await store(severity="Critical", title="worst")
    await store(severity="Low")
    html = await person.html("/incidents")
    links = dict(re.findall(r'<li><a href="(/incidents[^"]*)"[^>]*>([^<]+)</a>', html))
    assert {"All", "Mine", "Unassigned", "Most severe"} <= set(links.values())
    [severest] = [unescape(link) for link, words in links.items() if words == "Most severe"]
    html = await person.html(severest)
    assert html.index("worst") < html.index("/incidents/53")
    [older] = re.findall(r'rel="next" href="([^"]+)"', html)
    assert "sort=severity" in older
    assert "worst" not in await person.html(unescape(older))


async def test_the_list_is_filtered_by_content_and_shows_the_chosen_columns(api, person, store):
    nodes = [Node(kind, value) for kind, value in ENTITIES]
    await Graph(api.services.database).add(*nodes, title="Odd sign-in", techniques=["T1110.001"])
    await store(title="Other")
    for query in ("title=ODD", "entity=203.0.113.9", "technique=t1110", "columns=tags&title=odd"):
        html = await person.html(f"/incidents?{query}")
        assert "/incidents/1" in html, query
        assert "/incidents/2" not in html, query
    assert '<th class="column-tags">Tags</tr>' in html
    assert "columns=tags" in html
    text = await person.text("/incidents?columns=entities&columns=techniques&columns=bogus")
    assert "Incident Entities Techniques" in text
    assert "203.0.113.9 https://evil.example/?a… and 1 more T1110.001" in text
    usual = "severity,status,assignee,disposition,provider,alerts,updated"
    assert "Clear filters" not in await person.text(f"/incidents?columns={usual}")
    assert "No incidents match" in await person.text("/incidents?since=2099-01-01T00:00:00Z")


async def test_a_form_does_not_overwrite_what_somebody_else_has_changed(api, person, store):
    page = f"/incidents/{await store()}"
    html = await person.html(page)
    [old] = set(re.findall(r'name="version" value="([^"]+)"', html))
    analyst = Caller(api, await api.analyst())
    await analyst.ask("PATCH", f"/api/v1{page}", json={"disposition": "true-positive"})
    mine = {"disposition": "duplicate", "disposition_reason": "as #7", "version": unescape(old)}
    html = await person.submit(page, f"{page}/classify", 412, **mine)
    assert "Nothing was saved, because the incident has changed" in html
    assert "true positive by playbooks" in html
    html = await person.html(page)
    [current] = set(re.findall(r'name="version" value="([^"]+)"', html))
    mine["version"] = unescape(current)
    assert "duplicate by ana" in await person.submit(page, f"{page}/classify", **mine)


async def test_older_comments_are_one_link_away(api, person, store):
    page = f"/incidents/{await store()}"
    analyst = Caller(api, await api.analyst())
    for number in range(52):
        await analyst.ask("POST", f"/api/v1{page}/comments", 201, json={"text": f"say {number:02}"})
    latest = await person.html(page)
    assert "say 51" in latest
    assert "say 01" not in latest
    [older] = re.findall(r'href="([^"]+)">Older comments', latest)
    html = await person.html(unescape(older))
    assert "say 00" in html
    assert "say 01" in html
    assert "say 51" not in html
    assert f'href="{page}#comments">Latest comments' in html


async def test_the_timeline_names_a_comment_and_not_its_id(api, person, store):
    page = f"/incidents/{await store()}"
    await person.submit(page, f"{page}/comment", text="asked the network team")
    await person.submit(page, f"{page}/classify", disposition="duplicate")
    text = await person.text(page)
    assert "ana Comment added." in text
    assert "Disposition changed from none to duplicate." in text
    assert "cmt_" not in text
    assert "Disposition by" not in text


async def test_the_overview_counts_incidents_to_work_on_and_leads_to_them(person, store):
    await store(count=2, severity="Critical", status="New")
    await store(severity="Low", status="Closed")
    html = await person.html("/")
    links = [unescape(link) for link in re.findall(r'href="(/incidents\?[^"]+)"><strong>2<', html)]
    assert links == [
        "/incidents?status=New",
        "/incidents?severity=Critical&disposition=none",
        "/incidents?status=New&assignee=none",
    ]
    for link in links:
        assert "Incidents 2" in await person.text(link)


async def test_a_viewer_reads_the_triage_and_changes_nothing(api, viewer, store):
    number = await store()
    analyst = Caller(api, await api.analyst())
    await analyst.ask("POST", f"{INCIDENTS}/{number}/comments", 201, json={"text": "seen"})
    html = await viewer.html(f"/incidents/{number}")
    assert "seen" in html
    assert f"/incidents/{number}/comment" not in html


async def test_the_page_tells_which_entities_are_sources_and_which_targets(person, store):
    entities = [("ip", "203.0.113.9", "source"), ("host", "web-1", "target"), ("user", "ana")]
    number = await store(entities=[*entities, ("ip", "203.0.113.10", "both")])
    text = await person.text(f"/incidents/{number}")
    for words in (
        "203.0.113.9 ip source",
        "web-1 host target",
        "203.0.113.10 ip source and target",
    ):
        assert words in text
    assert "ana user source" not in text


async def test_the_list_is_narrowed_by_severity_status_and_time(person, store, clock):
    await store(title="old and low", severity="Low", now=clock.now() - timedelta(days=2))
    await store(title="new and bad", severity="Critical", status="Active", now=clock.now())
    for query in (
        "severity=critical",
        "status=Active",
        "timespan=PT24H",
        "severity=Critical&status=",
    ):
        text = await person.text(f"/incidents?{query}")
        assert "new and bad" in text, query
        assert "old and low" not in text, query
    assert "old and low" in await person.text("/incidents?timespan=P7D")


async def test_recent_and_absolute_times_filter_by_occurrence(person, store, clock):
    now = clock.now()
    await store(title="of old", occurred_at=now - timedelta(days=2))
    await store(title="of today", occurred_at=now - timedelta(hours=2))
    since, long_ago = (f"{now - timedelta(hours=ago):%Y-%m-%dT%H:%M:%SZ}" for ago in (1, 99))
    for query, is_today, is_old in (
        ("occurred=PT24H", True, False),
        ("occurred=P7D", True, True),
        (f"occurred=PT24H&since={since}", False, False),
        (f"occurred=PT24H&since={long_ago}", True, False),
        ("timespan=PT1H", True, True),
    ):
        html = await person.html(f"/incidents?{query}")
        assert ("of today" in html, "of old" in html) == (is_today, is_old), query
    assert 'value="PT24H" selected' in await person.html("/incidents?occurred=PT24H")


async def test_the_filter_by_title_leads_to_the_search_of_everything(person, store):
    await store(title="Odd sign-in")
    html = await person.html("/incidents?title=odd+s")
    assert "Title contains" in html
    assert 'href="/search?q=odd+s"' in html
    assert 'href="/search"' in await person.html("/incidents")


async def test_the_pages_of_the_list_hold_each_incident_once(person, store):
    await store(count=60)
    first = await person.html("/incidents?severity=High")
    following = first.partition('rel="next" href="')[2].partition('"')[0].replace("&amp;", "&")
    assert "severity=High" in following
    second = await person.html(following)
    seen = [f'href="/incidents/{number}"' for number in range(1, 61)]
    assert all((each in first) != (each in second) for each in seen)
    assert 'rel="next"' not in second


@pytest.mark.parametrize(
    "query",
    [
        "severity=awful",
        "timespan=24h",
        "occurred=24h",
        "occurred=P9999999999D",
        "cursor=x",
        "status=%00",
    ],
)
async def test_a_wrong_filter_is_told_what_is_right(person, query):
    text = await person.text(f"/incidents?{query}", 422)
    assert query.partition("=")[0] in text


async def test_an_incident_shows_what_is_known_of_it(person, store):
    number = await store(
        title="Odd sign-in",
        entities=ENTITIES,
        merged_into="case-9",
        severity_assumed=True,
        techniques=["T1059.001"],
    )
    html = unquote(unescape(await person.html(f"/incidents/{number}")))
    for link in (
        "/graph?entity=203.0.113.9&kind=ip",
        "/graph?entity=https://evil.example/?a=1&b=<i>&kind=url",
        "https://attack.mitre.org/techniques/T1059/001/",
        f"https://siem.example/{number}",
        '/search?q=kind:incident id:"case-9"',
    ):
        assert f'href="{link}"' in html.replace("+", " "), link
    text = await person.text(f"/incidents/{number}")
    for words in (
        "Odd sign-in",
        "What was seen.",
        "external-1",
        "The SIEM severity is missing or unknown, so Tocsin assumes",
        "case-9",
    ):
        assert words in text


@pytest.mark.parametrize("number", ["2", "0", "-1", "x", "1" * 30, "%00", "%ED%B3%BF"])
async def test_what_is_no_incident_is_a_page_that_says_so(person, store, number):
    await store()
    assert "Not Found" in await person.text(f"/incidents/{number}", 404)


async def test_the_chain_leads_from_the_stretch_to_the_remote_ticket(api, person, store):
    number = await store()
    write = api.services.database.write
    await write(add_destination, "soc")
    delivery = await write(
        add_delivery,
        "delivered",
        number=number,
        tried=2,
        remote_id="SIR-77",
        remote_url="https://tickets.example/77",
    )
    html = await person.html(f"/incidents/{number}")
    assert f'href="/deliveries/{delivery}"' in html
    assert 'href="https://tickets.example/77"' in html
    chain = (await person.text(f"/incidents/{number}")).partition("Delivery timeline")[2]
    words = [
        "Read",
        "Stored",
        "alerted",
        "incident-alert",
        "To soc delivered",
        "SIR-77",
        "HTTP 503",
    ]
    assert sorted(words, key=chain.index) == words


async def test_the_chain_and_the_timeline_have_the_changes_that_destinations_follow(
    api, person, store
):
    number = await store()
    write = api.services.database.write
    await write(add_destination, "jira")
    changes = {"status": {"from": "New", "to": HOSTILE}}
    kind = {"number": number, "kind": ChangeType.INCIDENT_CHANGED, "changes": changes}
    for _ in range(MAX_CHANGES):
        await write(add_event, **kind)
    updated = await write(add_event, **kind)
    delivery = await write(add_delivery, "delivered", event=updated, to="jira")
    receipt = {"response": b'{"objects":[{"id":"S-7","closed":true}]}', "outcome": "delivered"}
    attempt = update(attempts).where(attempts.c.delivery_id == delivery).values(**receipt)
    await write(lambda connection: connection.execute(attempt) and None)
    suppressed = update(events).where(events.c.id == await write(add_event, **kind))
    suppressed = suppressed.values(suppressed_by="known-scan")
    await write(lambda connection: connection.execute(suppressed) and None)
    html = await person.html(f"/incidents/{number}")
    assert f'href="/deliveries/{delivery}"' in html
    assert "<script>alert(1)" not in html
    chain = (await person.text(f"/incidents/{number}")).partition("Delivery timeline")[2]
    words = [
        "incident-changed",
        f"Status changed from New to {HOSTILE}",
        "Closed at jira: S-7",
        "To jira delivered",
        "Suppressed by the rule known-scan",
        "2 earlier changes are not shown: 2 no destination.",
        f"Event incident-changed created: status changed from New to {HOSTILE}.",
        "created, suppressed by known-scan: status",
    ]
    assert sorted(words, key=chain.index) == words


async def test_the_chain_says_why_nobody_heard_of_it(api, person, store):
    number = await store(alert_outcome="below-threshold")
    text = await person.text(f"/incidents/{number}")
    assert "No incident-alert event was created, because the severity is below Medium." in text
    await api.services.database.write(add_destination, "soc")
    await api.services.database.write(
        add_delivery, "dead", number=number, reason="404: no such project"
    )
    assert "404: no such project" in await person.text(f"/incidents/{number}")


@pytest.mark.parametrize(
    ("reason", "has_remedy"),
    [("router: no settings", True), (f"{RESTORED} b-1: it may have been delivered", False)],
)
async def test_an_event_on_hold_names_the_remedy_unless_its_reason_does(
    api, person, store, reason, has_remedy
):
    number = await store()
    await api.services.database.write(add_event, number=number, routed=False)
    await api.services.database.write(hold_unrouted_events, reason)
    text = await person.text(f"/incidents/{number}")
    assert (reason in text, "Fix the cause, then reload" in text) == (True, has_remedy)


async def test_what_happened_stands_in_the_order_of_time(api, person, store, clock):
    number = await store(now=clock.now() - timedelta(hours=1))
    await api.services.database.write(change_incident, number, now=clock.now(), status="Closed")
    text = (await person.text(f"/incidents/{number}")).partition("Timeline")[2]
    words = ["Incident occurred.", "Incident synced.", "Incident updated."]
    assert sorted(words, key=text.index) == words


async def test_no_text_of_others_becomes_markup_or_a_link_that_runs(api, person, store):
    number = await store(
        title=HOSTILE,
        description=HOSTILE,
        external_id=HOSTILE,
        external_number=HOSTILE,
        raw_status=HOSTILE,
        merged_into=HOSTILE,
        source_url="javascript:alert(1)",
        techniques=[HOSTILE],
        entities=[("file", HOSTILE)],
    )
    for path in ("/incidents", f"/incidents/{number}"):
        html = await person.html(path)
        assert "<script>alert" not in html
        assert '="javascript:' not in html
        assert HOSTILE in unescape(html)


async def test_a_viewer_reads_everything_and_changes_nothing(viewer, store):
    number = await store()
    for path in ("/incidents", f"/incidents/{number}"):
        assert 'method="post"' not in (await viewer.html(path)).partition("<main")[2]
    response = await viewer.post(f"/incidents/{number}/enrich")
    assert response.status == 403


async def test_investigating_an_incident_leads_to_the_investigation(api, person, store):
    number = await store()
    page = f"/incidents/{number}"
    assert f"What happened in incident {number}?" in await person.text(page)
    query = {"query": f"What happened in incident {number}?", "persona": "executive"}
    text = await person.submit(page, f"{page}/investigate", **query)
    assert "Investigation queued." in text
    assert "queued" in text
    row = await api.services.database.read(
        lambda c: c.execute(select(sessions.c.persona, sessions.c.created_by)).one()
    )
    assert tuple(row) == ("executive", "ana")


async def test_a_question_that_is_wrong_is_kept_and_told_what_is_right(person, store):
    number = await store()
    page = f"/incidents/{number}"
    given = {"query": "is it over?", "persona": "boss"}
    text = await person.submit(page, f"{page}/investigate", 422, **given)
    assert "persona" in text
    assert "threat-hunter" in text
    assert "is it over?" in text


async def test_an_investigation_that_examined_it_is_named(api, person, store):
    number = await store()
    session_id = await api.services.database.write(add_session)
    session = Node(NodeKind.SESSION, session_id)
    graph = Graph(api.services.database)
    await graph.tell(session, RelationType.EXAMINED, incident(number))
    html = await person.html(f"/incidents/{number}")
    assert f'href="/investigations/{session_id}"' in html
    assert "82.5 of 100" in html


async def test_what_was_written_back_stands_in_what_happened(api, person, store, clock):
    number, database = await store(), api.services.database
    session_id = await database.write(add_session)
    session = Node(NodeKind.SESSION, session_id)
    await Graph(database).tell(session, RelationType.EXAMINED, incident(number))
    told = {"session_id": session_id, "run": 1, "text": "x", "now": clock.now()}
    await database.write(plan_write_backs, **told, incidents=[(number, "sensors", "a")])
    ended = {"state": "failed", "reason": "it is closed", "finished_at": clock.now()}
    await database.write(lambda connection: connection.execute(update(write_backs).values(**ended)))
    text = (await person.text(f"/incidents/{number}")).partition("Timeline")[2]
    assert "SIEM comment: failed: it is closed." in text


class Source(Enricher):
    """Knows every address, and cannot be asked for links."""

    name = "source"
    kinds = frozenset({EntityKind.IP, EntityKind.URL})

    async def enrich(self, entities):
        if entities[0].kind is EntityKind.URL:
            raise Broken("it is away")
        return [
            Enrichment(entity=entity, summary=HOSTILE, disposition=Disposition.MALICIOUS, score=91)
            for entity in entities
        ]


@pytest.fixture
async def asking(api, person):
    """The same person at a node that has the source."""
    database, clock = api.services.database, api.services.clock
    settings = Source.Settings(plugin="test")
    source = Source(settings, make_tools(loopback_client(), clock=clock))
    markings = {"sensors": Marking()}
    enrichers = Enrichers({"source": source}, Environment(), database, clock, markings=markings)
    enriching = IncidentEnricher(enrichers, database, markings)
    services = replace(api.services, enricher=enriching)
    async with TestClient(TestServer(make_app(services))) as client:
        node = copy(api)
        node.client = client
        yield Person(node, person.cookie)


async def test_enriching_shows_at_once_who_knows_what_and_who_did_not_answer(asking, store):
    number = await store(entities=ENTITIES)
    page = f"/incidents/{number}"
    text = await asking.submit(page, f"{page}/enrich")
    for words in ("1 of 1 result", "source", HOSTILE, "malicious", "91", "it is away"):
        assert words in text


async def test_enriching_with_nobody_to_ask_says_so(person, store):
    number = await store()
    page = f"/incidents/{number}"
    assert "No enricher returned data about these entities." in await person.submit(
        page, f"{page}/enrich"
    )


async def test_the_link_of_an_alert_opens_the_incident(api, person):
    case = {"external_id": "case-17", "title": "Odd sign-in", "severity": "High"}
    headers = {"Authorization": f"Bearer {PUSH_TOKEN}"}
    response = await api.client.post(f"/api/push/{PUSHED}", json=case, headers=headers)
    assert response.status == 200
    data = await api.services.database.read(lambda c: c.scalar(select(events.c.data)))
    assert "Odd sign-in" in await person.text(URL(data["url"]).path)
