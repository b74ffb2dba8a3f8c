"""Defanged addresses in both directions."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin.observables import defang, refang


@pytest.mark.parametrize(
    ("text", "defanged"),
    [
        ("see http://evil.com/a.html.", "see hxxp[://]evil[.]com/a[.]html."),
        ("HTTPS://1.2.3.4:80/", "hxxpS[://]1[.]2[.]3[.]4:80/"),
        ("bob@evil.com, (www.evil.com)", "bob[@]evil[.]com, (www[.]evil[.]com)"),
        ("ftp://evil.com", "ftp[://]evil[.]com"),
        ("setup.sh is a link, too", "setup[.]sh is a link, too"),
        ("3.5% of report.pdf, e.g. here.", "3.5% of report.pdf, e.g. here."),
    ],
)
def test_nothing_is_left_that_a_program_would_make_a_link_of(text, defanged):
    assert defang(text) == defanged


def test_what_is_defanged_already_stays_as_it_is():
    text = "hxxps[://]evil[.]com"
    assert defang(text) == text


def test_refanging_turns_it_back():
    text = "http://evil.com/a.html and bob@evil.com at 1.2.3.4"
    assert refang(defang(text)) == text


@pytest.mark.parametrize("text", ["sshd[23]: (a) {b} [at noon]", r"C:\dir\.git and \d+\.\d+\w"])
def test_refanging_leaves_other_text_alone(text):
    assert refang(text) == text


@given(st.text())
def test_no_text_makes_them_raise_and_no_url_is_left(text):
    assert "http://" not in defang(text).lower()
    refang(text)
