"""Entities in free text."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin.model import Entity, EntityKind
from tocsin.observables import find_observables

HEX = "0123456789abcdef" * 8


def found(text: str) -> list[str]:
    observables = find_observables(text)
    return [f"{one.kind} {one.value}" for one in observables.entities] + list(
        observables.techniques
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "to 192.0.2.7:443, from [2001:DB8::7]:22 or ::ffff:192.0.2.8",
            ["192.0.2.7", "2001:db8::7", "192.0.2.8"],
        ),
        (
            "10.0.0.1->10.0.0.2 and 10.0.0.3-10.0.0.4",
            ["10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4"],
        ),
        ("192.0.2.7/32 and 192.0.2.7/24", ["192.0.2.7"]),
        ("fe80::1%eth0 is a neighbor", ["fe80::1"]),
        ("IP 192.0.2.1.51512 > 192.0.2.2.443: Flags [S]", ["192.0.2.1", "192.0.2.2"]),
    ],
)
def test_addresses_are_found_with_ports_brackets_and_prefix_lengths(text, expected):
    assert found(text) == [f"ip {address}" for address in expected]


@pytest.mark.parametrize(
    "text",
    [
        "version 1.2.3.4 and Chrome/120.0.0.0, but not 1.2.3.4.5, 256.1.1.1 or 01.2.3.4",
        "at 10:00:01 on 00:1a:2b:3c:4d:5e, 1.3.6.1.4.1.311.20.2.3, ab::cd, std::string",
        "the networks 192.0.2.0/24 and 2001:db8::/32",
        "report.pdf, setup.py, install.sh, archive.zip and README.md",
        "user.name, os.path, java.util.zip, logger.info(x), System.IO, self.id, a.link{color:red}",
        "It ended.In May, e.g. then.So it was.",
        "the user clicked on it, the host is down, no user found, the process was stopped",
        "the process: first this, the user: then that",
        f"commit {HEX[:40]}, session {HEX[:32]}, trace_id={HEX[:32]}, ja3={HEX[:32]}",
        "12345678901234567890123456789012 has 32 digits",
        r"HKCU\Environment, foo\nbar and ^\d{1,3}\.\d+$",
        '"GET /etc/passwd HTTP/1.1" 404, T1000, TA0002, CVE-2021',
        "Message-ID: <20260101.4411@mail.example.com>",
    ],
)
def test_what_only_looks_like_an_entity_is_none(text):
    assert found(text) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "see evil-site.com, EVIL.CO.UK. and www.münchen.de",
            ["domain evil-site.com", "domain evil.co.uk", "domain www.xn--mnchen-3ya.de"],
        ),
        ("web01.corp.local answered", ["host web01.corp.local"]),
        ("(http://Evil.com/a_(b)?x=1).", ["url http://evil.com/a_(b)?x=1", "domain evil.com"]),
        ("http://[2001:db8::7]:8080/x", ["url http://[2001:db8::7]:8080/x", "ip 2001:db8::7"]),
        ("ftp://web01/x", ["url ftp://web01/x", "host web01"]),
        ("mailto:Bob+x@evil.com", ["email bob+x@evil.com"]),
        (
            f"{HEX[:32]} {HEX[:40]} {HEX[:64]} {HEX}",
            [f"file_hash {HEX[:size]}" for size in (32, 40, 64, 128)],
        ),
        ("cve_2021_44228 with T1059.001 and T1190", ["cve CVE-2021-44228", "T1059.001", "T1190"]),
        (
            "https://attack.mitre.org/techniques/T1021/002/",
            [
                "url https://attack.mitre.org/techniques/T1021/002/",
                "domain attack.mitre.org",
                "T1021.002",
            ],
        ),
        (
            "arn:aws:iam::123456789012:user/carol",
            ["cloud_resource arn:aws:iam::123456789012:user/carol"],
        ),
    ],
)
def test_names_urls_mail_addresses_and_numbers_are_found(text, expected):
    assert found(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("hxxps://evil[.]com/a", ["url https://evil.com/a", "domain evil.com"]),
        ("hxxp[://]1[.]2[.]3[.]4", ["url http://1.2.3.4", "ip 1.2.3.4"]),
        (r"1\.2\.3\.4 1.2.3[.]4", ["ip 1.2.3.4"]),
        (
            "evil(dot)com evil [.] net cdn{.}evil{.}org",
            ["domain evil.com", "domain evil.net", "domain cdn.evil.org"],
        ),
        ("bob[at]evil[.]com", ["email bob@evil.com"]),
        ("2001[:]db8[::]7", ["ip 2001:db8::7"]),
        ("loader[.]sh", ["domain loader.sh"]),
    ],
)
def test_defanged_values_are_found_as_they_really_are(text, expected):
    assert found(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "Jan  5 10:00:01 web01 sshd[23]: Failed password for invalid user bob from 192.0.2.7",
            ["host web01", "process sshd", "user bob", "ip 192.0.2.7"],
        ),
        ("Accepted publickey for deploy from 192.0.2.7", ["user deploy", "ip 192.0.2.7"]),
        (
            "<34>1 2026-10-11T22:14:15.003Z gw.example.com su - ID47 - x",
            ["host gw.example.com", "process su"],
        ),
        ("user=alice host=web01 process=sshd", ["user alice", "host web01", "process sshd"]),
        ("user=- host=unknown", []),
        ('{"user":{"name":"alice"},"hostname":"WEB01"}', ["user alice", "host web01"]),
        (r"CORP\alice and NT AUTHORITY\SYSTEM", [r"user CORP\alice", r"user NT AUTHORITY\SYSTEM"]),
        (
            "Account Name: alice Account Domain: CORP Workstation Name: PC-1",
            ["user alice", "host pc-1"],
        ),
        ("Account Name: Account Domain: CORP", []),
        ("what did user alice do on host web01?", ["user alice", "host web01"]),
        ("UserPrincipalName=bob@example.com", ["user bob@example.com"]),
    ],
)
def test_users_hosts_and_processes_are_found_where_the_text_says_so(text, expected):
    assert found(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (r"C:\Program Files\A B\c.exe -x", [r"file C:\Program Files\A B\c.exe"]),
        (r'"C:\\Users\\eve\\a.js"', [r"file C:\Users\eve\a.js"]),
        (r"\\SRV01\c$\x.dll by CORP\bob", [r"file \\SRV01\c$\x.dll", r"user CORP\bob"]),
        (r"Image: C:\Windows\cmd.exe", [r"file C:\Windows\cmd.exe", "process cmd.exe"]),
        ("/etc/passwd and ~/.bash_history", ["file /etc/passwd", "file ~/.bash_history"]),
        ("powershell.exe ran", ["process powershell.exe"]),
        ("file name: setup.msi", ["file setup.msi"]),
    ],
)
def test_files_and_programs_are_found(text, expected):
    assert found(text) == expected


def test_each_is_given_once_in_order_of_first_appearance():
    text = "192.0.2.2 evil.com 192.0.2.1 EVIL.com 192.0.2.2"
    assert found(text) == ["ip 192.0.2.2", "domain evil.com", "ip 192.0.2.1"]


def test_no_more_are_given_than_asked_for_and_that_is_said():
    observables = find_observables("192.0.2.1 192.0.2.2 192.0.2.3", limit=2)
    assert [one.value for one in observables.entities] == ["192.0.2.1", "192.0.2.2"]
    assert not observables.complete
    assert find_observables("192.0.2.1 192.0.2.2", limit=2).complete


def test_a_long_text_is_read_to_its_end():
    text = "nothing to see here\n" * 10_000 + "192.0.2.7"
    assert find_observables(text).entities == (Entity(EntityKind.IP, "192.0.2.7"),)


@pytest.mark.parametrize("text", [": bob the user", "= ws-7 a Host", "bob :"])
def test_the_first_word_does_not_follow_the_last(text):
    assert found(text) == []


@given(st.text(alphabet="aZ07.:=@/\\[]() \n\u2028\ue001", max_size=40))
def test_known_words_are_read_as_new_words_are(text):
    first = find_observables(text)
    assert find_observables(text) == first


@given(st.text())
def test_no_text_makes_it_raise_and_every_value_is_normalised(text):
    for entity in find_observables(text).entities:
        assert entity == Entity(entity.kind, entity.value)
        assert entity.value


@given(
    st.lists(
        st.sampled_from(
            [
                "192.0.2.7",
                "evil.com",
                "user=",
                "bob",
                "C:\\a b",
                "\\",
                "://",
                "http",
                "@",
                "[.]",
                "=",
                ":",
                "::",
                "/",
                "-",
                ".",
                "(",
                "]",
                '"',
                "\n",
                " ",
                "a",
                "Name:",
                "for",
                "%",
                "*.",
                "ü",
                "\ue001",
            ]
        ),
        max_size=12,
    )
)
def test_no_arrangement_of_marks_makes_it_raise(parts):
    find_observables("".join(parts))


@pytest.mark.parametrize(
    "part",
    [
        "a=",
        "a:",
        "a/",
        "[.]",
        "C:\\a ",
        '"C:\\a.',
        "a.",
        "1:",
        "http://a(",
        "@",
        "user ",
        "\\",
        "ü.",
    ],
)
def test_hostile_text_takes_no_longer_than_its_length_allows(part):
    def seconds(size: int) -> float:
        words = [f"{n}{part * 900}"[:1_990] for n in range(size)]
        begin = time.process_time()
        find_observables(" ".join(words))
        return time.process_time() - begin

    assert seconds(20) < 0.5  # 40 kB; what is quadratic in a word takes many seconds
