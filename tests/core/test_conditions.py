import tracemalloc
from contextlib import suppress
from datetime import UTC, datetime
from time import thread_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin import Event, EventType, TicketSettings
from tocsin.conditions import Condition, Expression
from tocsin.sandbox import AllowanceExhausted

ALERT = {
    "event_type": "incident-alert",
    "subject": "incident:7",
    "data": {
        "title": "Many failed VPN sign-ins",
        "severity": "High",
        "provider": "cloud",
        "n": 7,
        "items": ["b", "A"],
    },
    "context": {
        "incident": {
            "entities": [{"kind": "ip", "value": "10.0.0.1"}, {"kind": "host", "value": "dc01"}],
            "occurred_at": "2026-11-22T10:00:00Z",
        },
        "long": "a" * 60_000,
    },
}


@pytest.mark.parametrize(
    "text",
    [
        "true",
        "data.provider == 'cloud'",
        "data.severity in ['High', 'Critical']",
        "'vpn' in data.title|lower and event_type == 'incident-alert'",
        "data.title.startswith('Many')",
        "data['n'] > 5 and not data.n == 8",
        "subject == 'incident:7'",
        "'10.0.0.1' in context.incident.entities|map(attribute='value')|list",
        "context.incident.entities|selectattr('kind', 'eq', 'ip')|list|length == 1",
        "context.incident.entities|selectattr('kind', 'eq', 'ip')",
        "context.incident.entities|rejectattr('value', 'in', ('dc01', 'vault'))|list|length == 1",
        "'dc' in context.incident.entities|map(attribute='value')|join(' ')",
        "(context.incident.entities|map(attribute='os', default='?')|unique|list) == ['?']",
        "data.items|map('lower')|sort|first == 'a' and data.items|last == 'A'",
        "data.items[1:] == ['A'] and data.items[-1] == 'A' and data.items[9] is undefined",
        "data.get('n', 0) + 1 == 8 and data.n // 2 == 3 and -data.n < 0 and (data.n % 2) is odd",
        "(1 if data.n > 5 else 2) == 1 and 5 < data.n <= 7 and 1.5 <= 1.5",
        "data.n is divisibleby 7 and data.title is string and data is mapping",
        "data.keys()|list|length == 5 and 'n' in data",
        "[3, 1, 2]|select('gt', 1)|sum == 5 and [3, 1]|max == 3 and 2.56|round(1) == 2.6",
        "'7'|int == 7 and 'x'|int(3) == 3 and '2.5'|float == 2.5 and ('9' * 0 if false else 1)",
        "data.title|truncate(10, true, '') == 'Many faile'",
        "{'a': [data.n]}|tojson == '{\"a\": [7]}'",
        "data.nope == none or data.nope is not none",
        "data.nope is undefined",
        "data.nope != 'x'",
        "'' == data.nope|lower",
    ],
)
def test_a_condition_that_holds(text):
    assert Condition(text).holds(ALERT) is True


@pytest.mark.parametrize(
    "text",
    [
        "false",
        "data.provider == 'edge'",
        "data.nope",
        "data.__class__",
        "data.nope.deeper == 'x'",
        "data.nope.deeper[3].still",
        "data.nope > 5",
        "5 <= data.nope",
        "data.nope < 5 or 5 >= data.nope",
        "'x' in data.nope",
        "data.nope.startswith('x')",
        "data.nope == data.nada",
        "data.nope in ['x', none]",
        "data.title.__class__.__mro__",
        "data['__class__']",
        "data.items.__self__",
        "data|map(attribute='__class__')|list|first",
        "data.nope|length > 0",
        "context.nope.entities|selectattr('kind', 'eq', 'ip')|list",
    ],
)
def test_a_condition_that_does_not_hold(text):
    assert Condition(text).holds(ALERT) is False


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "not a valid Jinja2 expression"),
        ("data.", "not a valid Jinja2 expression"),
        ("data.severity = 'High'", "to compare, write == instead of ="),
        ("data.a data.b", "not a valid Jinja2 expression"),
        ("{{ data.a }}", "not a valid Jinja2 expression"),
        ("data.a|shout", "unknown filter 'shout'; use one of abs, "),
        ("data.a|batch(2)", "unknown filter 'batch'"),
        ("data.a is loud", "unknown test 'loud'; use one of "),
        ("data.a|replace('x')", "the filter replace: missing a required argument: 'new'"),
        ("data.a|lower(1)", "the filter lower: too many positional arguments"),
        ("data.a|map(data.b)|list", "map requires the name of a filter in quotes"),
        ("data.a|map('map', 'x')|list", "unknown filter 'map'"),
        (
            "data.a|selectattr|list",
            "selectattr requires the dotted path of a member as its first argument",
        ),
        ("data.a|join(*data.b)", "cannot contain"),
        ("data.a ** 2", "'\\*\\*' is not available in expressions"),
        ("data.a[::2]", "without a step"),
        ("{data.a: 1}", "quoted strings"),
        ("99999999999999999999", "at most 64 bits"),
        ("'\\ud800' ~ data.title", "an unpaired surrogate"),
        ("data.title.format(data)", "an expression can call only "),
        (
            "severity == 'High'",
            "unknown name 'severity'; use one of event_type, data, subject, context",
        ),
        ("range(9)", "unknown name 'range'"),
        ("(data.a)(1)", "an expression can call only "),
        ("namespace(a=1)", "unknown name 'namespace'"),
        ("self", "unknown name 'self'"),
        ("data.a == '" + "x" * 1_000 + "'", "1,000 characters"),
        ("(" * 490 + "1" + ")" * 490, "too deeply"),
        ("-" * 900 + "1", "too deeply"),
        ("data" + ".a" * 450, "too deeply"),
        ("1" + "+1" * 480, "too deeply"),
    ],
)
def test_what_is_no_condition_is_refused_in_words(text, reason):
    with pytest.raises(ValueError, match=reason):
        Condition(text)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("data.n > 'x'", "cannot compare text with a number"),
        ("data.title - 1", "expected a number, found text"),
        ("data.n in 5", "requires text, a list or an object, found a number"),
        ("7 in data.title", "cannot search text for a number"),
        ("[1, 'a']|sort", "expected only strings or only numbers to sort, found a number and text"),
        ("9223372036854775807 * 9223372036854775807", "at most 64 bits"),
        ("data.title|truncate(100001)", "from 0 to 100,000"),
        ("data.title|truncate('nan'|float)", "an integer from 0"),
        ("data.title|replace('a', 'b', -1)", "an integer from 0"),
        ("2.5|round(400)", "an integer from 0 to 15"),
        ("data.items|map(attribute=context.long)|list", "at most 200 characters"),
        ("data.title|trim(context.long)", "at most 100"),
        ("1 / 0", "division by zero"),
    ],
)
def test_what_has_no_value_raises_with_the_reason(text, reason):
    with pytest.raises((TypeError, ValueError, ArithmeticError), match=reason):
        Condition(text).holds(ALERT)


@pytest.mark.parametrize(
    "text",
    [
        "context.long|replace('', context.long)",
        "context.long|list|join(context.long)",
        "context.long|list|select('in', context.long|list)|list",
        "context.long|list|map('default', context.long)|join",
        "context.long|list|map(attribute='" + "a." * 99 + "', default={})|list",
        " ~ ".join(["context.long"] * 60),
        " + ".join(["context.long"] * 60),
        "[" + ", ".join(["context.long"] * 60) + "]|tojson",
        " or ".join(["(context.long|list|sort) == 1"] * 25),
        " or ".join(["context.long|wordcount < 0"] * 30),
    ],
)
def test_a_costly_condition_ends_before_its_limit(text):
    condition = Condition(text)
    tracemalloc.start()
    started = thread_time()
    with pytest.raises(AllowanceExhausted):
        condition.holds(ALERT)
    seconds, (_, peak) = thread_time() - started, tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert seconds < 1
    assert peak < 50_000_000


@pytest.mark.parametrize(
    "text",
    [
        """[[1]|batch("nan"|float), ("a"*20000)|list|map(attribute="a."*30000,default={})|list]""",
        "('a'*5000)|list|map(attribute='a.'*4000,default={})|list",
        "1|tojson('a'*60000)",
        "('a\\n'*1000)|indent([0]*100000)",
        "'%999999999d'|format(1)",
        "'x'|center(999999999)",
        "[1]|slice(999999999)|list",
        "data" + "|e" * 280,
        "10 ** 10 ** 10",
        "cycler(1)",
    ],
)
def test_known_bombs_are_refused_or_only_raise(text):
    with pytest.raises((ValueError, TypeError)):
        Condition(text).holds(ALERT)


def test_a_value_is_json_and_null_where_the_event_lacks_it():
    made = Expression("{'a': data.n, 'b': [data.nope, data.items[:1]], 'c': data.title ~ data.x}")
    assert made.value(ALERT) == {"a": 7, "b": [None, ["b"]], "c": "Many failed VPN sign-ins"}
    assert Expression("data.nope").value(ALERT) is None


@pytest.mark.parametrize("text", ["'nan'|float", "[{'a': 1e308 * 10}]"])
def test_a_number_that_json_lacks_is_no_value(text):
    with pytest.raises(ValueError, match="not a JSON number"):
        Expression(text).value(ALERT)


def test_all_fields_of_a_ticket_share_the_limits_of_one_expression():
    fields = {f"f{n}": f"(context.long ~ {n})|length" for n in range(50)}
    settings = TicketSettings.model_construct(fields=fields | {"ok": "data.n", "bad": "1 / 0"})
    event = Event(
        id="evt_1",
        event_type=EventType.INCIDENT_ALERT,
        timestamp=datetime(2026, 11, 23, tzinfo=UTC),
        subject="incident:7",
        data=ALERT["data"],
        context=ALERT["context"],
    )
    values, reasons = settings.evaluate_fields(event)
    assert values == {"f0": 60_001, "ok": 7}
    assert "the limit of characters and items" in reasons["f1"]
    assert reasons.keys() == (fields.keys() - {"f0"}) | {"bad"}


@given(
    st.text(
        st.sampled_from("data.n|()[]{}'\"~+-*/%=<>!, 19notinisorandmapupperlist\n\\"), max_size=60
    )
)
def test_any_text_is_a_condition_or_a_value_error(text):
    try:
        condition = Condition(text)
    except ValueError:
        return
    with suppress(Exception):
        condition.holds(ALERT)
