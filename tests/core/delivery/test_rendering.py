import json
import threading
from datetime import UTC, datetime, timedelta, timezone
from html.parser import HTMLParser
from types import MappingProxyType

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tocsin_templates
from tocsin import Event, EventType, Misconfigured
from tocsin.clock import isoformat
from tocsin.delivery.rendering import Renderer
from tocsin.sandbox import BoundedEnvironment

MOMENT = datetime(2026, 11, 21, 5, 33, 1, 123456, UTC)
SHIPPED = Renderer(list(tocsin_templates.tocsin_template_paths()))
ALERT = {
    "incident_number": 7,
    "title": "Many failed sign-ins",
    "severity": "High",
    "status": "New",
    "provider": "cloud",
    "url": "https://tocsin.example.com/console/incidents/7",
}


def event(data=ALERT, **fields):
    defaults = {
        "id": "01JD5N0T2QWERTY",
        "event_type": EventType.INCIDENT_ALERT,
        "timestamp": MOMENT,
        "subject": "incident:7",
    }
    return Event(data=data, **{**defaults, **fields})


def output(expression):
    return "{{ " + expression + " }}"


@pytest.fixture
def write(tmp_path):
    """Write templates for the receiver `mine`, and return a renderer that has them."""

    def write(text, **others):
        folder = tmp_path / "mine"
        folder.mkdir(exist_ok=True)
        (folder / "incident-alert.json.j2").write_text(text, encoding="utf-8")
        for name, other in others.items():
            (folder / f"{name}.json.j2").write_text(other, encoding="utf-8")
        return Renderer([tmp_path])

    return write


@pytest.fixture
def render(write):
    """Render one template with the data of an event, and return what came out as JSON."""

    def render(text, data=ALERT, **others):
        return json.loads(write(text, **others).render("mine", event(data)))

    return render


@pytest.fixture
def refusal(write):
    """Return the text with which a template is refused."""

    def refusal(text, data=ALERT, **others):
        with pytest.raises(Misconfigured) as caught:
            write(text, **others).render("mine", event(data))
        return str(caught.value)

    return refusal


# --- the envelope


def test_the_envelope_is_exactly_what_the_specification_says():
    body = SHIPPED.render("envelope", event(context={"incident": {"description": "internal"}}))
    assert body == orjson.dumps(
        {"event_type": "incident-alert", "timestamp": "2026-11-21T05:33:01.123Z", "data": ALERT}
    )


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda children: (
        st.lists(children, max_size=5) | st.dictionaries(st.text(max_size=9), children, max_size=5)
    ),
    max_leaves=10,
)


@given(st.dictionaries(st.text(), JSON, max_size=5))
def test_the_envelope_gives_back_any_data(data):
    body = SHIPPED.render("envelope", event(data))
    assert json.loads(body) == {
        "event_type": "incident-alert",
        "timestamp": "2026-11-21T05:33:01.123Z",
        "data": data,
    }


def test_the_envelope_is_the_same_with_the_template_engine_and_without(write):
    [folder] = tocsin_templates.tocsin_template_paths()
    shipped = (folder / "envelope" / "incident-alert.json.j2").read_text()
    by_engine = write("{% if true %}" + shipped + "{% endif %}")

    @given(st.dictionaries(st.text(), JSON, max_size=5))
    def compare(data):
        expected = by_engine.render("mine", event(data))
        assert SHIPPED.render("envelope", event(data)) == expected

    compare()


@given(st.text(st.characters(codec=None)))
def test_the_envelope_takes_any_text_and_replaces_only_what_utf8_cannot_hold(text):
    title = json.loads(SHIPPED.render("envelope", event({"title": text})))["data"]["title"]
    assert title == "".join("\ufffd" if "\ud800" <= each <= "\udfff" else each for each in text)


def test_data_may_be_any_kind_of_mapping():
    body = SHIPPED.render("envelope", event(MappingProxyType({"a": MappingProxyType({"b": 1})})))
    assert json.loads(body)["data"] == {"a": {"b": 1}}


@pytest.mark.parametrize(
    ("moment", "text"),
    [
        (MOMENT, "2026-11-21T05:33:01.123Z"),
        (datetime(2026, 1, 1, tzinfo=UTC), "2026-01-01T00:00:00.000Z"),
        (datetime(2026, 1, 1, 1, tzinfo=timezone(timedelta(hours=2))), "2025-12-31T23:00:00.000Z"),
    ],
)
def test_times_are_written_in_utc_to_the_millisecond(moment, text):
    assert isoformat(moment) == text


# --- no value breaks out

HOSTILE = [
    'a"b',
    "a\\",
    '", "severity": "Low',
    "line\nbreak\r\n\ttab\x00\x1b\x7f",
    "{{ 7 * 7 }}{% if true %}{# #}",
    "}}",
    "${jndi:ldap://x}",
    "</script><!--",
    "\u2028\u2029",
    "\u202egnp.exe",
    "\U0001f514",
    "é" * 50_000,
]


@pytest.mark.parametrize("value", HOSTILE)
def test_a_hostile_value_stays_a_value(render, value):
    text = '{"title": {{ event.data.title }}, "text": {{ "Title: " ~ event.data.title }}}'
    assert render(text, {"title": value}) == {"title": value, "text": f"Title: {value}"}


@pytest.mark.parametrize("filters", ["safe", "e", "safe|upper", "escape|safe", "tojson|safe"])
def test_no_filter_lets_a_value_out_of_its_string(render, filters):
    body = render(output("event.data.title|" + filters), {"title": '", "x": "'})
    assert isinstance(body, str)


@pytest.mark.parametrize("value", HOSTILE)
def test_a_macro_is_serialised_once_and_what_it_is_given_as_well(render, value):
    text = """
        {%- macro field(name, value) %}{"name": {{ name }}, "value": {{ value }}}{% endmacro -%}
        [{{ field("Title", event.data.title) }}, {{ field("Number", 7) }}]
    """
    assert render(text, {"title": value}) == [
        {"name": "Title", "value": value},
        {"name": "Number", "value": 7},
    ]


def test_blocks_set_includes_imports_and_calls_are_serialised_once(render):
    text = """
        {%- import "mine/macros.json.j2" as macros -%}
        {%- set set %}{"a": {{ event.data.title }}}{% endset -%}
        {%- macro wrap() %}[{{ caller() }}]{% endmacro -%}
        {
          "set": {{ set }},
          "import": {{ macros.twice(event.data.title) }},
          "include": {% include "mine/part.json.j2" %},
          "call": {% call wrap() %}{{ event.data.title }}{% endcall %}
        }
    """
    macros = "{% macro twice(value) %}[{{ value }}, {{ value }}]{% endmacro %}"
    title = 'say "hi"'
    assert render(text, {"title": title}, macros=macros, part="{{ event.data.title }}") == {
        "set": {"a": title},
        "import": [title, title],
        "include": title,
        "call": [title],
    }


def test_what_is_made_of_a_macros_output_is_a_value_again(render):
    text = '{% macro m() %}{{ event.data.title }}{% endmacro %}{{ m() ~ "" }}'
    assert render(text, {"title": 'a"b'}) == '"a\\"b"'


def test_constants_and_loops_are_serialised_as_well(render):
    assert render("[{{ 1 }}, {{ 'x' }}, {{ none }}, {{ 1.5 }}, {{ (1, 2) }}]") == [
        1,
        "x",
        None,
        1.5,
        [1, 2],
    ]
    text = "[{% for name in event.data %}{{ name }}{% if not loop.last %},{% endif %}{% endfor %}]"
    assert render(text, {"a": 1, "b": 2}) == ["a", "b"]


def test_output_is_minified(write):
    body = write('{\n  "a" : {{ event.data.title }} ,\n "b" : [ 1 ]\n}').render("mine", event())
    assert body == b'{"a":"Many failed sign-ins","b":[1]}'


def test_event_and_context_are_there(write):
    text = "[{{ event.id }}, {{ event.subject }}, {{ event.event_type }}, {{ context.owner.name }}]"
    body = write(text).render("mine", event(context={"owner": {"name": "Ada"}}))
    assert json.loads(body) == ["01JD5N0T2QWERTY", "incident:7", "incident-alert", "Ada"]


# --- what is refused, and where it says that the mistake is


@pytest.mark.parametrize(
    "expression",
    ["event.data.nope", "nope", "[event.data.nope]", "event.data.nope.deeper", "{'a': nope}"],
)
def test_an_undefined_field_is_refused_with_template_and_line(refusal, expression):
    text = refusal('{\n"a": 1,\n"b": ' + output(expression) + "}")
    assert text.startswith("mine/incident-alert.json.j2, line 3: ")
    assert "nope" in text


def test_a_mistake_in_an_included_template_is_found_there(refusal):
    text = refusal('[\n{% include "mine/part.json.j2" %}\n]', part="\n\n\n{{ event.data.nope }}")
    assert text.startswith("mine/part.json.j2, line 4: ")


def test_a_syntax_error_is_refused_with_template_and_line(refusal):
    assert refusal("{\n{% if %}\n}").startswith("mine/incident-alert.json.j2, line 2: ")


def test_output_that_is_not_json_is_refused(refusal):
    text = refusal('{"a": 1,}')
    assert text.startswith("mine/incident-alert.json.j2: the output is not JSON: ")
    assert "line 1" in text


@pytest.mark.parametrize(
    "expression",
    [
        "1 / 0",
        "range(10)",
        "range(10**9)|list",
        "event.data.items()",
        "2**64",
        "'\\ud800'",
        "joiner",
    ],
)
def test_what_json_cannot_hold_is_refused_with_template_and_line(refusal, expression):
    assert "mine/incident-alert.json.j2, line 2: " in refusal("\n" + output(expression))


@pytest.mark.parametrize("number", [2**64, -(2**63) - 1, 2**200])
def test_a_number_is_refused_rather_than_rounded(number):
    with pytest.raises(Misconfigured, match=r"envelope/incident-alert.json.j2, line 1: .*64-bit"):
        SHIPPED.render("envelope", event({"n": number}))


@pytest.mark.parametrize(
    "expression",
    [
        "''.__class__.__mro__",
        "event.__class__",
        "event.data.__class__.__base__.__subclasses__()",
        "event.data['__class__']",
        "event.data|attr('__class__')",
        "cycler.__init__.__globals__",
        "self.__init__.__globals__",
        "'{0.__class__}'.format(event)",
        "'{e.__class__}'.format_map({'e': event})",
        "event.data.update({'title': 'x'})",
        "event.data.clear()",
        "[].append(1)",
    ],
)
def test_nothing_leads_out_of_the_sandbox(refusal, expression):
    assert refusal(output(expression)).startswith("mine/incident-alert.json.j2, line 1: ")


def test_a_template_cannot_include_files_of_elsewhere(refusal, tmp_path):
    (tmp_path.parent / "secret").write_text('"secret"')
    assert "../secret" in refusal('{% include "../secret" %}')
    assert "secret" in refusal('{% include "mine/../../secret" %}')


def test_output_is_limited(write):
    renderer = write("{{ event.data.title }}")
    assert len(renderer.render("mine", event({"title": "x" * (256 * 1024 - 2)}))) == 256 * 1024
    with pytest.raises(Misconfigured, match="larger than 256 KiB"):
        renderer.render("mine", event({"title": "x" * (256 * 1024 - 1)}))


def test_output_without_end_is_given_up_at_the_limit(refusal):
    text = "{% for a in range(99999) %}{% for b in range(99999) %}{{ b }}{% endfor %}{% endfor %}"
    assert "larger than 256 KiB" in refusal(text)


def test_a_template_that_is_missing_is_named():
    with pytest.raises(Misconfigured, match="no template directory contains nobody/incident-alert"):
        SHIPPED.render("nobody", event())


@pytest.mark.parametrize(
    ("part", "names"),
    [
        ("text", "envelope/incident-alert.txt.j2"),
        ("subject", "envelope/incident-alert.subject.json.j2 or .* or .*subject.html.j2"),
    ],
)
def test_a_part_that_is_missing_is_named(part, names):
    with pytest.raises(Misconfigured, match=f"no template directory contains {names}"):
        SHIPPED.render("envelope", event(), part)


def test_a_template_that_is_missing_inside_another_is_named_where_it_is_asked_for(refusal):
    text = refusal('[\n{% include "mine/nope.json.j2" %}]')
    assert text == (
        "mine/incident-alert.json.j2, line 2: no template directory contains mine/nope.json.j2"
    )


def test_what_is_wrong_with_a_template_is_found_once(write):
    renderer = write("{% if %}")
    for _ in range(2):
        with pytest.raises(Misconfigured, match=r"^mine/incident-alert.json.j2, line 1: "):
            renderer.render("mine", event())


# --- parts and their formats


@pytest.fixture
def parts(tmp_path):
    """Write templates of `mine`, named as they are on disk, and return what renders a part."""

    def parts(templates, data=ALERT):
        (tmp_path / "mine").mkdir(exist_ok=True)
        for name, text in templates.items():
            (tmp_path / "mine" / name).write_text(text, encoding="utf-8")
        renderer = Renderer([tmp_path])
        return lambda part: renderer.render("mine", event(data), part).decode()

    return parts


def test_each_part_has_a_template_of_its_own_and_its_suffix_is_the_format(parts):
    render = parts(
        {
            "incident-alert.json.j2": '{"title": {{ event.data.title }}}',
            "incident-alert.txt.j2": "Title: {{ event.data.title }}",
            "incident-alert.html.j2": "<b>{{ event.data.title }}</b>",
            "incident-alert.subject.txt.j2": "[Tocsin] {{ event.data.title }}",
            "incident-alert.comment.html.j2": "<i>{{ event.data.title }}</i>",
            "incident-alert.fields.json.j2": "[{{ event.data.title }}]",
        },
        {"title": 'a "b" <c>'},
    )
    assert {part: render(part) for part in ("body", "text", "html", "subject")} == {
        "body": '{"title":"a \\"b\\" <c>"}',
        "text": 'Title: a "b" <c>',
        "html": "<b>a &#34;b&#34; &lt;c&gt;</b>",
        "subject": '[Tocsin] a "b" <c>',
    }
    assert render("comment") == "<i>a &#34;b&#34; &lt;c&gt;</i>"
    assert render("fields") == '["a \\"b\\" <c>"]'


@pytest.mark.parametrize("suffix", ["txt", "html"])
def test_in_text_nothing_is_nothing_and_what_is_no_text_is_json(parts, suffix):
    text = "{{ none }}|{{ true }}|{{ 1.5 }}|{{ [1, none] }}"
    render = parts({f"incident-alert.{suffix}.j2": text})
    assert render("text" if suffix == "txt" else "html") == "|true|1.5|[1,null]"


def test_lines_that_hold_only_a_statement_leave_no_trace_in_text(parts):
    text = "a\n  {% for name in ['b', 'c'] %}\n{{ name }}\n  {% endfor %}\nd\n"
    assert parts({"incident-alert.txt.j2": text})("text") == "a\nb\nc\nd"


def test_a_macro_of_html_is_escaped_once(parts):
    text = "{% macro b(x) %}<b>{{ x }}</b>{% endmacro %}{{ b(event.data.title) ~ '<' }}"
    render = parts({"incident-alert.html.j2": text}, {"title": "<i>"})
    assert render("html") == "<b>&lt;i&gt;</b>&lt;"


class _Elements(HTMLParser):
    """Collects what a browser would see: elements, their attributes, and the text."""

    def __init__(self):
        super().__init__()
        self.elements = []
        self.text = ""

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, attributes))

    def handle_data(self, data):
        self.text += data


ANY_TEXT = st.text(st.characters(codec=None)) | st.text("<>\"'&;#=x/!-`\\{}%\u202e\n\ud800")
PAGE = """<p title="{{ event.data.v }}" id='{{ event.data.v }}'>{{ event.data.v }}</p>"""
BODY = '{"v": {{ event.data.v }}, "w": {{ "w" ~ event.data.v }}, "x": {% set x %}{{ event.data.v }}'
BODY += "{% endset %}{{ x }}}"


@pytest.fixture(scope="module")
def page_and_body(tmp_path_factory):
    folder = tmp_path_factory.mktemp("templates")
    (folder / "mine").mkdir()
    (folder / "mine" / "incident-alert.html.j2").write_text(PAGE)
    (folder / "mine" / "incident-alert.json.j2").write_text(BODY)
    renderer = Renderer([folder])
    return lambda value, part: renderer.render("mine", event({"v": value}), part)


def _without_surrogates(text):
    return "".join("\ufffd" if "\ud800" <= each <= "\udfff" else each for each in text)


@given(ANY_TEXT)
def test_no_text_breaks_out_of_json(page_and_body, value):
    value, body = _without_surrogates(value), json.loads(page_and_body(value, "body"))
    assert body == {"v": value, "w": f"w{value}", "x": value}


@given(ANY_TEXT)
def test_no_text_breaks_out_of_html(page_and_body, value):
    seen, value = _Elements(), _without_surrogates(value)
    seen.feed(page_and_body(value, "html").decode())
    seen.close()
    assert seen.elements == [("p", [("title", value), ("id", value)])]
    assert seen.text == value


@pytest.mark.parametrize("value", ["x" * 100_000, '"' * 100_000, "\n" * 100_000, "\ud800" * 80_000])
def test_long_text_is_a_value_as_well(render, value):
    assert render("[{{ event.data.v }}]", {"v": value}) == [_without_surrogates(value)]


# --- which templates there are


def _write(folder, templates):
    for name, text in templates.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder


@pytest.fixture
def overridden(tmp_path):
    """Return a renderer of what is shipped for `mine`, below an operator's own templates."""

    def overridden(shipped, own):
        plugins, operators = _write(tmp_path / "plugins", shipped), _write(tmp_path / "own", own)
        return Renderer([plugins], operators)

    return overridden


def test_an_override_of_one_template_leaves_the_others(overridden):
    renderer = overridden(
        {"mine/incident-alert.json.j2": '"shipped"', "mine/schedule-disabled.json.j2": '"other"'},
        {"mine/incident-alert.json.j2": '"own"'},
    )
    assert renderer.render("mine", event()) == b'"own"'
    other = event(event_type=EventType.SCHEDULE_DISABLED)
    assert renderer.render("mine", other) == b'"other"'


def test_an_override_of_an_included_template_reaches_what_includes_it(overridden):
    renderer = overridden(
        {
            "mine/incident-alert.json.j2": '[{% include "mine/name.json.j2" %}]',
            "mine/name.json.j2": '"shipped"',
        },
        {"mine/name.json.j2": '"own"'},
    )
    assert renderer.render("mine", event()) == b'["own"]'


def test_an_override_can_build_on_what_is_shipped(overridden):
    shipped = {
        "mine/incident-alert.json.j2": '{"by": {% block by %}"shipped"{% endblock %}}',
        "mine/macros.json.j2": "{% macro twice(x) %}[{{ x }}, {{ x }}]{% endmacro %}",
    }
    own = """
        {%- extends "shipped/mine/incident-alert.json.j2" %}
        {%- import "shipped/mine/macros.json.j2" as macros %}
        {%- block by %}[{{ super() }}, {{ macros.twice("own") }}]{% endblock %}
    """
    renderer = overridden(shipped, {"mine/incident-alert.json.j2": own})
    assert json.loads(renderer.render("mine", event())) == {"by": ["shipped", ["own", "own"]]}


@pytest.mark.parametrize("text", ["\n{{ nope }}", "\n{% if %}"])
def test_a_broken_override_is_named_by_its_whole_path(overridden, tmp_path, text):
    renderer = overridden(
        {"mine/incident-alert.json.j2": '"shipped"'}, {"mine/incident-alert.json.j2": text}
    )
    path = tmp_path / "own" / "mine" / "incident-alert.json.j2"
    with pytest.raises(Misconfigured) as caught:
        renderer.render("mine", event())
    assert str(caught.value).startswith(f"{path}, line 2: ")


def test_what_is_shipped_is_not_taken_from_the_operators_folder(overridden):
    text = '{% include "shipped/mine/own.json.j2" %}'
    renderer = overridden(
        {}, {"mine/incident-alert.json.j2": text, "mine/own.json.j2": "1", "shipped/a.json.j2": ""}
    )
    with pytest.raises(Misconfigured, match=r"no template directory contains .*mine/own\.json\.j2"):
        renderer.render("mine", event())


def test_the_first_folder_wins(tmp_path):
    folders = []
    for name in ("first", "second"):
        (tmp_path / name / "mine").mkdir(parents=True)
        (tmp_path / name / "mine" / "incident-alert.json.j2").write_text(f'"{name}"')
        folders.append(tmp_path / name)
    assert Renderer(folders).render("mine", event()) == b'"first"'


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("see #17, GH-4 and gh-5", "see `#17`, `GH-4` and `gh-5`"),
        ("owner/repo#1#2", "owner/repo`#1#2`"),
        ("a ` #3 ` b", r"a \` `#3` \` b"),
        ("# 4 and #x", r"\# 4 and \#x"),
    ],
)
def test_references_in_markdown_are_code_without_invisible_characters(write, text, shown):
    rendered = write(output("event.data.title|markdown")).render("mine", event({"title": text}))
    assert json.loads(rendered) == shown
    assert all(character.isprintable() for character in json.loads(rendered))


def test_mrkdwn_becomes_text_for_slack(write):
    title = "<!channel> & <https://evil.example|safe> &amp;"
    rendered = write(output("event.data.title|mrkdwn")).render("mine", event({"title": title}))
    assert json.loads(rendered) == (
        "&lt;!channel&gt; &amp; &lt;https://evil.example|safe&gt; &amp;amp;"
    )


async def test_templates_and_what_they_include_are_compiled_in_a_thread(tmp_path, monkeypatch):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "incident-alert.json.j2").write_text('{% include "mine/_part.j2" %}')
    (tmp_path / "mine" / "_part.j2").write_text("1")
    compilers, load = [], BoundedEnvironment.compile

    def compile_noted(*args, **options):
        compilers.append(threading.current_thread())
        return load(*args, **options)

    monkeypatch.setattr(BoundedEnvironment, "compile", compile_noted)
    renderer = Renderer([tmp_path])
    await renderer.prepare("mine", EventType.INCIDENT_ALERT, ["body", "note"])
    assert len(compilers) == 2
    assert threading.main_thread() not in compilers
    assert renderer.render("mine", event()) == b"1"
    await renderer.prepare("mine", EventType.INCIDENT_ALERT, ["body", "note"])
    assert len(compilers) == 2
