"""Texts that try to take a node's time, its memory, or what is in its process."""

from __future__ import annotations

_GROWS = "{% set n = namespace(x=[1], y=[1]) %}"
_TWICE = "{% for a in range(40) %}"

CONDITIONS = (
    """[[1]|batch("nan"|float), ("a"*20000)|list|map(attribute="a."*30000,default={})|list]""",
    "('a'*5000)|list|map(attribute='a.'*4000,default={})|list",
    "1|tojson('a'*60000)",
    "data" + "|e" * 280,
    "data.n" + "|upper" * 160,
    # not a number, infinite, and integers beyond any bound
    "data.words|map(attribute='n'|float)|list",
    "('nan'|float)|round(15, 'ceil')",
    "1e308|round(15, 'ceil') or ('inf'|float)|int",
    "data.big * data.big * data.big",
    "-data.big - data.big - data.big",
    "0x" + "f" * 900,
    "1" + "_1" * 490,
    "1e" + "9" * 990,
    "data.words[18446744073709551615:]|sum(start=18446744073709551615)",
    "2 ** 99999 ** 99999",
    # depth
    "data" + ".a" * 495,
    "data" + "[0]" * 330,
    "data.long" + "[0:]" * 240,
    "(" * 499 + "1" + ")" * 499,
    "-" * 998 + "1",
    "not " * 248 + "1",
    "1 if 1 else " * 82 + "0",
    "+".join(["1"] * 500),
    "[" * 480 + "1" + "]" * 480,
    "{'a':" * 150 + "1" + "}" * 150,
    # repetition, and products of lists
    "~".join(["data.long"] * 99),
    "'" + "\\\\" * 40 + "'" + "|tojson" * 100,
    "data.long" + "|tojson" * 40,
    "data.long|replace('', data.long)",
    "data.words|map('join', data.long)|list",
    "data.words|select('in', data.words)|list",
    "data.words|map('d', data.words)|map('tojson')|list",
    "data.long|list|map('list')|map('sort')|list|unique|list",
    "data.long.split()|map('list')|list",
    "('a' ~ data.long) in (data.long ~ data.long ~ data.long)",
    "data.long.split(data.long[1:])",
    "data.long.strip(data.long)",
    "data.long|truncate(99999999, true, data.long)",
    "data.entities|map(attribute='" + "a." * 90 + "a')|list",
    "data.words|sort" + "|sort" * 60,
    "[data.words]" + " == [data.words]" * 60,
    # what other languages have
    "'%099999999d'|format(1)",
    "'{0.__class__}'.format(data)",
    "data.long|regex_search('(a+)+$')",
    "data.long is matching('(a+)+$')",
    "data.long|wordwrap(1)|urlize|indent(99999)",
    "range(10**9)|list",
    "''.__class__.__mro__[1].__subclasses__()",
    "data|map(attribute='__class__.__init__.__globals__')|list",
    "data.get.__func__.__globals__",
    "data|attr('__class__')",
    "cycler.__init__.__globals__",
    "{% for a in range(99999) %}{% endfor %}",
    "1 }}{% set a = 1 %}{{ 1",
    # text that is not text
    "'\\ud800' ~ data.long",
    "data['\\ud800\\x00']",
    "data|map('\\ud800')",
    "data.\u0130.\uff41 == '\u202e'",
    "'\\U00110000'",
)
"""Conditions over an event whose data has `n`, `big`, `x`, `title`, `long`, `list`, `words` and
`entities`."""

TEMPLATES = (
    "{{ 1|tojson('a' * 190000) }}",
    "{{ ('a\n' * 1000)|indent([0] * 100000) }}",
    "{{ ('9' * 4000)|int is divisibleby 7 }}",
    "{{ [1]|batch('nan'|float) }}{{ ('a' * 20000)|list|map(attribute='a.' * 30000)|list }}",
    "{{ event" + "|e" * 280 + " }}",
    "{{ event.data.words|map('list')|list|tojson(8) }}",
    "{{ (('<' * 90000) ~ '!--->' * 9000)|striptags }}",
    "{{ ('\u0416' * 300000)|list }}",
    # values that contain another twice, and are compared or hashed
    _GROWS + "{% macro m() %}{% set n.x = varargs %}{% endmacro %}"
    "{% macro k() %}{% set n.y = varargs %}{% endmacro %}"
    + _TWICE
    + "{{ m(n.x, n.x) }}{{ k(n.y, n.y) }}{% endfor %}{{ n.x == n.y }}",
    _GROWS + "{% macro m() %}{% set n.x = kwargs %}{% endmacro %}"
    "{% macro k() %}{% set n.y = kwargs %}{% endmacro %}"
    + _TWICE
    + "{{ m(a=n.x, b=n.x) }}{{ k(a=n.y, b=n.y) }}{% endfor %}{{ n.x == n.y }}",
    _GROWS + _TWICE + "{% set n.x = cycler(n.x, n.x).items %}"
    "{% set n.y = cycler(n.y, n.y).items %}{% endfor %}{{ n.x == n.y }}",
    _GROWS + "{% macro m() %}{% set n.x = varargs %}{% endmacro %}{{ m('a') }}"
    "{% for a in range(30000) %}{{ m(n.x) }}{% endfor %}{{ n.x in {'a': 1} }}",
    _GROWS + _TWICE + "{% set n.x = [1]|batch(50, n.x)|list %}{% endfor %}{{ n.x == [n.x] }}",
    _GROWS + _TWICE + "{% set n.x = [nope, nope]|map('d', n.x)|list %}{% endfor %}",
    _GROWS + _TWICE + "{% set n.x = {'a': n.x}.values() %}{% endfor %}{{ n.x|list }}",
    _GROWS + "{% for a in range(900) %}{% set n.x = [n.x] %}{% endfor %}{{ n.x == [n.x] }}",
    "{% set n = namespace() %}{% set n.x = n %}{{ [n]|tojson }}",
    # loops, recursion and macros
    "{% for a in range(99999) %}" * 9 + "{% endfor %}" * 9,
    "{% for a in [1] recursive %}{{ loop([1]) }}{% endfor %}",
    "{% macro m(k) %}{% if k %}{{ m(k - 1) }}{{ m(k - 1) }}{% endif %}{% endmacro %}{{ m(40) }}",
    "{% macro m(a, k) %}{% if k %}{{ m(a ~ a, k - 1) }}{% endif %}{% endmacro %}{{ m('a', 40) }}",
    "{% set x %}{% for a in range(99999) %}" + "a" * 99 + "{% endfor %}{% endset %}{{ x }}",
    "{% include 'mine/incident-alert.txt.j2' %}",
    "{% import 'mine/incident-alert.txt.j2' as x %}{{ x }}",
    "{{ range(0, 9223372036854775807)|sum }}{{ range(99999)|list|batch(1)|list }}",
    # filters
    "{{ ('%999s' * 20000)|format(*range(20000)) }}",
    "{{ '%*d'|format(99999999, 1) }}{{ '%.99999999f'|format(1e308) }}",
    "{{ ('\ufdfa' * 90000)|upper|title|lower|capitalize }}",
    "{{ ('\U0001f600' * 60000)|urlencode }}",
    "{{ ('z' * 150000)|int(base=36) }}{{ ('f' * 150000)|int(base=16) }}",
    "{{ ('\"' * 90000)|e|forceescape|forceescape|forceescape }}",
    "{{ 'a'|center(99999)|center(99999)|replace('', 'a' * 99999) }}",
    # compilation
    "{{ " + "9" * 20_000 + " }}",
    "{{ " + "(" * 15_000 + " }}",
    "{{ " + "+".join(["1"] * 9_000) + " }}",
    "{{ event" + "[0]" * 9_000 + " }}",
    "{% if 1 %}" * 2_000,
    "{% if 0 %}" + "{% elif 0 %}" * 2_000 + "{% endif %}",
    "{{ " + " ~ ".join(f"a{number}" for number in range(4_000)) + " }}",
    "".join(f"{{% set a{number} = 1 %}}" for number in range(1_700)),
    "{#" * 15_000,
    # what is not a template's business
    "{{ ''.__class__.__mro__ }}{{ self._TemplateReference__context }}",
    "{{ namespace.__init__.__globals__ }}{{ cycler.__init__.__globals__ }}",
    "{% macro m() %}{% endmacro %}{{ m._func.__globals__ }}",
    "{{ '{0.__class__}'.format(1) }}{% include '../../../../etc/passwd' %}",
)
"""Templates over the same event."""
