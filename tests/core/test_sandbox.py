from time import thread_time

import jinja2.filters
import pytest

from tocsin.sandbox import Allowance, AllowanceExhausted, BoundedEnvironment, pause, spend
from tocsin.sandbox.arguments import PARAMETERS
from tocsin.sandbox.filters import FILTERS, list_parameters

LEFT_OUT = {"attr", "pprint", "random", "urlize", "wordwrap", "xmlattr"}
PLENTY = 10**12


def burn(seconds):
    started = thread_time()
    while thread_time() - started < seconds:
        pass


def test_the_filters_of_jinja_are_those_that_were_looked_at():
    assert set(FILTERS) - {"shorten"} == set(jinja2.filters.FILTERS) - LEFT_OUT


def test_every_parameter_of_every_filter_is_checked():
    applied = {"map", "reject", "rejectattr", "select", "selectattr"}  # checked on their own
    parameters = {name: list_parameters(FILTERS[name]) for name in FILTERS.keys() - applied}
    assert parameters.pop("format") == ("args", "kwargs")  # all of them values
    assert {name: tuple(PARAMETERS.get(name, ())) for name in parameters} == parameters


def test_a_cost_is_a_natural_number():
    for cost in (float("nan"), -1, 1.5, True):
        with Allowance(PLENTY, 1), pytest.raises(TypeError, match="natural number"):
            spend(cost)


def test_every_look_up_is_paid_for():
    template = BoundedEnvironment().from_string("{{ d|map(attribute='a.b.c')|list|length }}")
    with Allowance(10_000, 60), pytest.raises(AllowanceExhausted):
        template.render(d=[{"a": {"b": {"c": 1}}}] * 3_000)


def test_every_filter_takes_what_it_takes_in_jinja():
    text = """{{ [3, 1]|sort|map('string')|join(', ') }} {{ ' x '|trim|center(3)|upper }}
        {{ '%05.1f'|format(3.14159) }} {{ 'a-b'|replace('-', '+', 1) }} {{ 'a\nb'|indent(2, true) }}
        {{ [1, 2, 3]|batch(2, 0)|list }} {{ [1, 2, 3]|slice(2)|list }} {{ 2.5|round(1, 'floor') }}
        {{ [{'n': 1}, {'n': 2}]|sum(attribute='n') }} {{ {'b': 1, 'a': 2}|dictsort }}
        {{ [{'k': 1, 'v': 2}]|groupby('k')|map(attribute='list')|first }} {{ 'x'|default('y') }}
        {{ [1, 2]|select('in', [2])|list }} {{ 'a b'.split(' ') }} {{ {'a': 1}.get('b', 7) }}
        {{ 'A'|lower ~ (1 + 2 * 3) }} {{ 'abc'[1:] }} {{ 7 % 4 }} {{ '-' * 3 }}
        {{ {'a': [1]}|tojson }}"""
    plain = jinja2.Environment(autoescape=False).from_string(text).render()
    template = BoundedEnvironment().from_string(text)
    with Allowance(PLENTY, 60):
        assert template.render() == plain


@pytest.mark.parametrize(
    "expression",
    [
        "range|string",
        "[[range]]|string",
        "{'a': joiner()}|upper",
        "namespace()|e",
        "cycler('a')|title",
        "'' ~ range",
        "[range]|join",
        "'%s'|format(range)",
        "'a'|replace('a', range)",
        "'a'.upper|string",
        "[range]|map('string')|join",
    ],
)
def test_what_is_no_data_has_no_text_since_that_names_memory_addresses(expression):
    template = BoundedEnvironment().from_string("{{ " + expression + " }}")
    with Allowance(PLENTY, 60), pytest.raises(TypeError, match="only JSON values can be rendered"):
        template.render()


def test_time_is_bounded_whatever_the_units():
    template = BoundedEnvironment().from_string(
        "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}"
    )
    with Allowance(PLENTY, 0.01), pytest.raises(AllowanceExhausted, match="longer than 10 ms"):
        template.render()


def test_short_work_never_comes_to_the_clock():
    with Allowance(PLENTY, 0):
        for _ in range(10):
            burn(0.001)
            spend(1)


def test_time_stands_still_while_it_is_told_to():
    with Allowance(PLENTY, 0.02) as allowance:
        allowance.look()
        with pause():
            burn(0.03)
        allowance.look()
        burn(0.03)
        with pytest.raises(AllowanceExhausted):
            allowance.look()


def test_each_evaluation_has_an_allowance_of_its_own():
    with Allowance(10, 1):
        with Allowance(5, 1), pytest.raises(AllowanceExhausted):
            spend(6)
        spend(10)
        with pytest.raises(AllowanceExhausted):
            spend(1)


def test_nothing_is_spent_outside_of_an_evaluation():
    with pytest.raises(LookupError):
        spend(1)


def test_a_member_is_found_by_its_name_and_four_methods_come_first():
    template = BoundedEnvironment().from_string(
        "{{ d.update }} {{ d['items'] }} {{ d.items()|list|length }} {{ d.copy }}"
    )
    with Allowance(PLENTY, 60):
        assert template.render(d={"update": 1, "items": 2}) == "1 2 2 "
