"""Templates that would take for ever, or all memory: each is refused, soon and in little memory."""

import re
import tracemalloc
from datetime import UTC, datetime
from time import thread_time

import pytest

from tocsin import Event, EventType, Misconfigured
from tocsin.delivery.rendering import Renderer

DATA = {
    "long": "ab c\n<" * 10_000,
    "a": "a" * 60_000,
    "b": "a" * 30_000 + "b" + "a" * 29_000,
    "many": [f"v{number}" for number in range(5_000)],
}
ALERT = Event(
    id="01JD5N0T2QWERTY",
    event_type=EventType.INCIDENT_ALERT,
    timestamp=datetime(2026, 11, 21, tzinfo=UTC),
    subject="incident:7",
    data=DATA,
)


@pytest.fixture
def refusal(tmp_path):
    """Return the text with which a template is refused, within bounds of time and memory."""

    def refusal(text):
        (tmp_path / "mine").mkdir()
        (tmp_path / "mine" / "incident-alert.json.j2").write_text(text)
        renderer = Renderer([tmp_path])
        tracemalloc.start()
        started = thread_time()
        try:
            with pytest.raises(Misconfigured) as caught:
                renderer.render("mine", ALERT)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert thread_time() - started < 10  # the bound is 0.5, where memory is not being traced
        assert peak < 64 * 1024 * 1024
        return str(caught.value)

    return refusal


def output(expression):
    return "{{ " + expression + " }}"


def repeated(statement):
    return "{% for i in range(99999) %}" + statement + "{% endfor %}1"


def doubled(first, expression):
    """Return a template that doubles a value 60 times."""
    begin = "{% set ns = namespace(x=" + first + ") %}{% for i in range(60) %}"
    return begin + "{% set ns.x = " + expression + " %}{% endfor %}{{ ns.x }}"


WITHOUT_END = {
    "loops": repeated("{% for b in range(99999) %}{% endfor %}"),
    "loops over what a condition leaves out": repeated(
        "{% for b in range(99999) if false %}{% endfor %}"
    ),
    "a macro that calls itself twice": (
        "{% macro m(n) %}{% if n %}{% set x = m(n - 1) ~ m(n - 1) %}{% endif %}{% endmacro %}"
        "{{ m(40) }}"
    ),
    "blocks that give two others": "".join(
        f"{{% block b{n} %}}{{% set x = self.b{n + 1}() ~ self.b{n + 1}() %}}{{% endblock %}}"
        for n in range(30)
    )
    + "{% block b30 %}{% endblock %}",
    "a search in long text": repeated("{% if event.data.b in event.data.a %}{% endif %}"),
    "a search in a list": repeated("{% if 'q' in event.data.many %}{% endif %}"),
    "a search of all in all": output("event.data.many|select('in', event.data.many)|list|length"),
    "equal lists": repeated("{% if event.data.many + [] == event.data.many + [] %}{% endif %}"),
    "words": repeated("{% set x = event.data.long|wordcount %}"),
    "markup": repeated("{% set x = event.data.long|striptags %}"),
    "addresses": repeated("{% set x = event.data.long|urlencode %}"),
    "titles": repeated("{% set x = event.data.long|title|truncate(9) %}"),
    "sorting": repeated("{% set x = event.data.many|sort %}"),
    "lists": repeated("{% set x = range(99999)|list %}"),
    "slices": repeated("{% set x = event.data.long[1:] %}"),
    "arguments": "{% set c = cycler(*range(99999)) %}" + repeated("{% set x = c.next() %}"),
    "every character against every other": output("event.data.a|trim(event.data.b)"),
    "the same as a method": output("event.data.a.strip(event.data.b)"),
}

WITHOUT_MEASURE = {
    "text times a number": output("'x' * 1000000000"),
    "a number times text": output("1000000000 * 'x'"),
    "a list times a number": output("[1] * 1000000000"),
    "a width for each": output("range(99999)|map('string')|map('center', 999)|list"),
    "an indent": output("event.data.long|indent(99999)"),
    "an indent of text": output("event.data.long|indent(event.data.long)"),
    "a separator": output("event.data.many|join(event.data.long)"),
    "a replacement": output("event.data.long|replace('', event.data.long)"),
    "values in a format": output("('%s' * 9999)|format(event.data.long)"),
    "widths in a format": output("('%.999f' * 9999)|format(1)"),
    "text that doubles": doubled("'xx'", "ns.x ~ ns.x"),
    "text that is added": doubled("'xx'", "ns.x + ns.x"),
    "text that is joined": doubled("'xx'", "[ns.x, ns.x]|join(ns.x)"),
    "text that is replaced": doubled("'xx'", "ns.x|replace('x', ns.x)"),
    "lists of lists": doubled("[1]", "[ns.x, ns.x]"),
    "tuples of tuples": doubled("(1,)", "(ns.x, ns.x)"),
    "mappings of mappings": doubled("{}", "{'a': ns.x, 'b': ns.x}"),
    "mappings that are called": doubled("{}", "dict(a=ns.x, b=ns.x)"),
    "views of mappings": "{% set x = [event.data.items()] * 1000 %}" + output("x ~ ''"),
    "what a block has set": "{% set ns = namespace(x='xx') %}{% for i in range(60) %}{% set y %}"
    "{{ ns.x }}{{ ns.x }}{% endset %}{% set ns.x = y %}{% endfor %}{{ ns.x }}",
    "what a macro gives": "{% macro m(x) %}{{ x }}{{ x }}{% endmacro %}"
    + doubled("'x'", "m(ns.x)"),
    "text of the template": "{% set y %}{% for i in range(99999) %}"
    + "x" * 30_000
    + "{% endfor %}{% endset %}1",
    "one long expression": "{% set a = event.data.long %}{{ " + "a ~ " * 5_000 + "a }}",
    "one long list": "{% set a = event.data.long %}{{ [" + "a, " * 5_000 + "a] }}",
    "what each call keeps": "{% macro m(n) %}{% set x = event.data.long|upper %}{{ m(n + 1) }}"
    "{% endmacro %}{{ m(0) }}",
}


@pytest.mark.parametrize("template", WITHOUT_END.values(), ids=WITHOUT_END)
def test_work_without_end_is_given_up(refusal, template):
    assert refusal(template).startswith("mine/incident-alert.json.j2, line 1: this ")


@pytest.mark.parametrize("template", WITHOUT_MEASURE.values(), ids=WITHOUT_MEASURE)
def test_values_without_measure_are_not_made(refusal, template):
    assert refusal(template).startswith("mine/incident-alert.json.j2, line 1: this ")


@pytest.mark.parametrize(
    "template",
    [
        "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
        "{% for a in [1] recursive %}{{ loop([1, 2]) }}{% endfor %}",
        '{% include "mine/incident-alert.json.j2" %}',
        '{% extends "mine/incident-alert.json.j2" %}',
        '{% import "mine/incident-alert.json.j2" as me %}',
        doubled("[]", "[ns.x]").replace("60", "99999"),
        "{{ " + "(" * 5_000 + "1" + ")" * 5_000 + " }}",
        "{{ " + "not " * 5_000 + "1 }}",
        "{{ event" + ".a" * 5_000 + " }}",
        "{% if 1 %}" * 2_000 + "{% endif %}" * 2_000,
    ],
    ids=str.split("macro loop include extends import list parentheses operators members blocks"),
)
def test_depth_without_end_is_given_up(refusal, template):
    assert refusal(template).startswith("mine/incident-alert.json.j2")


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ("10 ** 10 ** 10", r"\*\* is not available"),
        ("'%999999999d' % 1", "% only supports numbers"),
        ("'%*d' % (999999999, 1)", "% only supports numbers"),
        ("'%999999999d'|format(1)", "widths of at most three digits"),
        ("'%-+#0 9999d'|format(1)", "widths of at most three digits"),
        ("'%.9999f'|format(1)", "widths of at most three digits"),
        ("'%*d'|format(999999999, 1)", "widths of at most three digits"),
        ("'%(a)9999d'|format({'a': 1})", "in order"),
        ("'{:999999999}'.format(1)", "'format' of a str"),
        ("'{a:999999999}'.format_map({'a': 1})", "'format_map' of a str"),
        ("'x'.center(999999999)", "'center' of a str"),
        ("'x'.zfill(999999999)", "'zfill' of a str"),
        ("'\t'.expandtabs(999999999)", "'expandtabs' of a str"),
        ("'x'.join(event.data.many)", "'join' of a str"),
        ("'x'['center'](9)", "'center' of a str"),
        ("[1].copy()", "'copy' of a list"),
        ("1 .to_bytes(999999999)", "'to_bytes' of a int"),
        ("[[1]]|sum(start=[])", "expected a number, found a value of the type list"),
        ("('1' * 2000)|int(base=2)", "at most 64 bits"),
        ("9999999999 * 9999999999 % 7", "at most 64 bits"),
        ("99999999999999999999", "at most 64 bits"),
        ("'x'|center(999999999)", "an integer from 0 to 100,000"),
        ("'x'|center(-1)", "an integer from 0 to 100,000"),
        ("'x'|truncate('nan'|float)", "an integer from 0"),
        ("[1]|batch('nan'|float)|list", "an integer from 0"),
        ("[1]|batch(999999999, 0)|list", "an integer from 0"),
        ("[1]|slice(999999999)|list", "an integer from 0"),
        ("1.5|round(999999999, 'ceil')", "an integer from 0 to 15"),
        ("1|tojson('a' * 190000)", "an integer from 0 to 8"),
        ("event.data|tojson(indent=999999999)", "an integer from 0 to 8"),
        ("('a\n' * 1000)|indent([0] * 100000)", "an integer from 0 to 100,000"),
        ("'x'|list|map(attribute='a.' * 4000, default={})|list", "at most 200 characters"),
        ("'x'|list|sort(attribute='a.' * 4000)", "at most 200 characters"),
        ("'x'|list|selectattr('a.' * 4000)|list", "at most 200 characters"),
        ("range|string", "a function is not a value"),
        ("cycler(1)|string", "a Cycler is not a value"),
        ("1" + " + 1" * 60, "at most 50 deep"),
        ("event.data.a" + "|e" * 280, "at most 50 deep"),
        ("[" + "1, " * 9_999 + "1]", "at most 10,000 in number"),
        ("lipsum(n=99999999)", "'lipsum' is undefined"),
        ("'http://' * 9|urlize", "urlize"),
        ("event.data.long|wordwrap(1)", "wordwrap"),
        ("event.data.many|random", "random"),
        ("4000000000 * 4000000000 * 4000000000", "64 bits"),
    ],
)
def test_what_cannot_be_bounded_is_not_available(refusal, expression, reason):
    assert re.search(reason, refusal(output(expression)))


def test_a_template_itself_is_bounded(refusal):
    assert "a template may have at most 32 KiB" in refusal("x" * 66_000)


def test_a_namespace_is_not_written_out(refusal):
    text = "{% set ns = namespace(x='secret') %}{{ ns ~ '' }}"
    assert "a _Namespace cannot be rendered" in refusal(text)


def test_a_thousand_entities_are_well_within_the_bounds(tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "incident-alert.json.j2").write_text("""
        {%- macro field(entity) %}{"t": {{ entity.kind|upper }}, "v": {{ entity.value|trim }}}
        {%- endmacro -%}
        {%- set sorted = context.entities|sort(attribute="value") -%}
        [{% for entity in sorted if entity.kind in ["ip", "url"] %}
            {{ field(entity) }}{% if not loop.last %},{% endif %}
        {% endfor %}]
    """)
    entities = [{"kind": "ip", "value": f"10.0.{n // 256}.{n % 256}"} for n in range(1_000)]
    fields = {name: getattr(ALERT, name) for name in ("id", "event_type", "timestamp", "subject")}
    crowded = Event(**fields, data={}, context={"entities": entities})
    assert Renderer([tmp_path]).render("mine", crowded).count(b'"IP"') == 1_000
