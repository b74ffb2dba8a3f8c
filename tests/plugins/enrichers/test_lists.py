"""List enricher: CSV and STIX."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin import Disposition, Entity, EntityKind, Misconfigured
from tocsin_plugins.enrichers import Lists
from tocsin_plugins.enrichers.csv_lists import read_csv
from tocsin_plugins.enrichers.stix_lists import parse_comparisons, read_stix

PLAIN = """\
# what we block
203.0.113.0/24, scanners
203.0.113.9, the worst of them
evil.example
*.wild.example
bad@mail.example
http://cdn.example/payload.bin
44D88612FEA8A8F36DE82E1278ABB02F, EICAR
CVE-2021-44228
"""
NAMED = """\
kind,value,description,tags
user,svc-backup,service account,service tier0
host,web-1,,
process,"C:\\x, y.exe",odd,
nonsense,x,,
ip,not an address,,
"""


@pytest.fixture
def make_list(make, tmp_path):
    def made(content, *, name="list.csv", means="deny", **settings):
        path = tmp_path / name
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return make(Lists, name="ours", path=str(path), list=means, **settings)

    return made


def entity(kind, value):
    return Entity(EntityKind(kind), value)


@pytest.mark.parametrize(
    ("asked", "entry"),
    [
        (entity("ip", "203.0.113.9"), "203.0.113.9"),
        (entity("ip", "203.0.113.10"), "203.0.113.0/24"),
        (entity("ip", "::ffff:203.0.113.10"), "203.0.113.0/24"),
        (entity("domain", "evil.example"), "evil.example"),
        (entity("domain", "WWW.Evil.Example."), "evil.example"),
        (entity("domain", "a.b.wild.example"), "*.wild.example"),
        (entity("url", "https://user@www.evil.example:8443/x"), "evil.example"),
        (entity("url", "http://203.0.113.77/x"), "203.0.113.0/24"),
        (entity("url", "http://cdn.example/payload.bin"), "http://cdn.example/payload.bin"),
        (entity("email", "Anyone@evil.example"), "evil.example"),
        (entity("email", "BAD@mail.example"), "bad@mail.example"),
        (entity("host", "db.evil.example"), "evil.example"),
        (
            entity("file_hash", "44d88612fea8a8f36de82e1278abb02f"),
            "44D88612FEA8A8F36DE82E1278ABB02F",
        ),
        (entity("cve", "cve-2021-44228"), "CVE-2021-44228"),
    ],
)
async def test_values_networks_and_domains_with_all_below_are_found(make_list, asked, entry):
    [said] = await make_list(PLAIN).enrich([asked])
    assert said.facts["entry"] == entry
    assert said.disposition is Disposition.MALICIOUS


@pytest.mark.parametrize(
    "asked",
    [
        entity("ip", "203.0.114.1"),
        entity("ip", "::1"),
        entity("domain", "notevil.example"),
        entity("domain", "example"),
        entity("email", "good@mail.example"),
        entity("url", "http://cdn.example/other"),
        entity("user", "evil.example"),
    ],
)
async def test_what_is_not_on_the_list_is_not_found(make_list, asked):
    assert await make_list(PLAIN).enrich([asked]) == []


@pytest.mark.parametrize(
    ("means", "disposition"),
    [
        ("allow", Disposition.BENIGN),
        ("Deny", Disposition.MALICIOUS),
        ("watch", Disposition.SUSPICIOUS),
    ],
)
async def test_the_list_says_what_it_means_to_be_on_it(make_list, means, disposition):
    [said] = await make_list(PLAIN, means=means).enrich([entity("domain", "evil.example")])
    assert said.disposition is disposition
    assert said.summary == f"On the {means.lower()} list “ours”"


async def test_columns_with_names_say_kind_description_and_tags(make_list):
    enricher = make_list(NAMED, means="watch")
    asked = [entity("process", "C:\\x, y.exe"), entity("user", "svc-backup"), entity("user", "x")]
    process, user = await enricher.enrich(asked)
    assert process.summary == "On the watch list “ours”: odd"
    assert user.tags == ("watch-list", "service", "tier0")
    assert (await enricher.check()).detail.endswith(": 3 entries; 2 unusable")


async def test_a_file_is_read_again_when_it_has_changed(make_list, tmp_path):
    enricher = make_list("a.example\n")
    path, asked = tmp_path / "list.csv", [entity("domain", "a.example")]
    assert len(await enricher.enrich(asked)) == 1
    path.write_text("other.example\n")
    assert await enricher.enrich(asked) == []


async def test_one_that_cannot_be_read_any_more_counts_as_before(make_list, tmp_path):
    enricher = make_list("a.example\n")
    path, asked = tmp_path / "list.csv", [entity("domain", "a.example")]
    await enricher.start()
    for spoil in (lambda: path.write_bytes(b"\xff\xfe\xff"), path.unlink):
        spoil()
        assert len(await enricher.enrich(asked)) == 1


@pytest.mark.parametrize(
    ("content", "name"),
    [("what is this\n", "a.csv"), ("{}", "a.json"), ("[", "a.json"), ('{"type": "x"}', "b.stix")],
)
async def test_a_file_without_use_keeps_the_list_from_starting(make_list, content, name):
    with pytest.raises(Misconfigured, match=name):
        await make_list(content, name=name).start()


def bundle(*patterns, **parts):
    indicators = [
        {"type": "indicator", "pattern_type": "stix", "pattern": pattern, **parts}
        for pattern in patterns
    ]
    return {"type": "bundle", "id": "bundle--1", "objects": [{"type": "identity"}, *indicators]}


@pytest.mark.parametrize(
    ("pattern", "asked"),
    [
        ("[ipv4-addr:value = '203.0.113.9']", entity("ip", "203.0.113.9")),
        ("[ipv4-addr:value ISSUBSET '203.0.113.0/24']", entity("ip", "203.0.113.9")),
        ("[ipv6-addr:value = '2001:DB8::1']", entity("ip", "2001:db8::1")),
        ("[domain-name:value = 'evil.example']", entity("domain", "www.evil.example")),
        ("[url:value = 'http://x.example/it\\'s']", entity("url", "http://x.example/it's")),
        ("[email-addr:value='a@b.example']", entity("email", "a@b.example")),
        ("[file:hashes.'SHA-256' = '" + "AB" * 32 + "']", entity("file_hash", "ab" * 32)),
        ("[file:hashes.MD5 = '" + "cd" * 16 + "']", entity("file_hash", "cd" * 16)),
        (
            "[ipv4-addr:value = '192.0.2.1' OR domain-name:value = 'b.example']",
            entity("domain", "b.example"),
        ),
        ("[ipv4-addr:value = '192.0.2.1'] OR [url:value = 'a://[x]']", entity("url", "a://[x]")),
    ],
)
async def test_simple_patterns_are_found(make_list, pattern, asked):
    enricher = make_list(bundle(pattern, name="Botnet", confidence=85), name="feed.json")
    [said] = await enricher.enrich([asked])
    assert said.score == 85
    assert said.summary.endswith(": Botnet")


@pytest.mark.parametrize(
    "pattern",
    [
        "[ipv4-addr:value = '192.0.2.1' AND url:value = 'x']",
        "[ipv4-addr:value = '192.0.2.1'] FOLLOWEDBY [url:value = 'x']",
        "[domain-name:value LIKE '%.example']",
        "[ipv4-addr:value != '192.0.2.1']",
        "[ipv4-addr:value = '192.0.2.1'] WITHIN 5 SECONDS",
        "[ipv4-addr:value = 'x']",
        "[network-traffic:dst_port = '22']",
        "[url:value = ''] OR",
        "[]",
        "",
    ],
)
async def test_what_cannot_be_told_of_one_entity_is_passed_over(make_list, pattern):
    good = "[domain-name:value = 'evil.example']"
    enricher = make_list(bundle(pattern, good), name="feed.json")
    assert (await enricher.check()).detail.endswith(": 1 entry; 1 unusable")


async def test_an_indicator_counts_until_it_ends_and_not_when_revoked(make_list, clock):
    pattern = "[domain-name:value = 'evil.example']"
    asked = [entity("domain", "evil.example")]
    revoked = make_list(bundle(pattern, revoked=True), name="revoked.json")
    assert await revoked.enrich(asked) == []
    ending = make_list(bundle(pattern, valid_until="2026-11-21T13:00:00Z"), name="ending.json")
    assert len(await ending.enrich(asked)) == 1
    clock.advance(hours=1)
    assert await ending.enrich(asked) == []
    assert (await ending.check()).detail.endswith(": 1 entry; 1 expired")


@given(st.text(st.sampled_from("[]' \\=:ORipv4-adru.lex"), max_size=60))
def test_no_pattern_is_more_than_a_value_error(pattern):
    try:
        found = list(parse_comparisons(pattern))
    except ValueError:
        return
    assert found


@given(st.binary(max_size=200))
def test_no_file_is_more_than_a_value_error(content):
    for read in (read_csv, read_stix):
        try:
            assert len(read(content)) >= 0
        except ValueError:
            continue
