from ipaddress import ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin.net.urls import build_policy, check_url, parse_proxy, parse_url

LOOPBACK = (ip_network("127.0.0.0/8"), ip_network("::1/128"))

# Beside those that test_bypasses.py tries.
MISLEADING = [
    "https://user:password@example.com/",
    "https://example.com/#",
    "https://example.com/a b",
    "https://example.com:0/",
    "https://example.com:99999/",
    "https://example.com:port/",
    "https://[::1",
    "https://[v1.a:b]/",
    "https://a..b/",
    "https://xn--a/",
    "https://XN--/",
    "https://a.xn--zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz.example/",
    "https://a,b/",
    "https://" + "a" * 64 + ".example/",
    "https://" + "a." * 127 + "aa/",
]


@pytest.mark.parametrize("url", MISLEADING)
def test_urls_that_mislead_are_no_urls(url):
    with pytest.raises(ValueError, match="the URL"):
        parse_url(url)


def check(url, networks=()):
    """Judge `url` as a client does that may reach `networks`."""
    target = parse_url(url)
    check_url(target, build_policy(target, networks))


@pytest.mark.parametrize(
    "url",
    [
        "https://hooks.example.com/tocsin?key=a%2Fb",
        "HTTPS://Hooks.Example.com.:8443/",
        "https://bücher.example/",
        "https://under_score.example/",
        "https://1.1.1.1/",
        "https://[2606:4700:4700::1111]:8443/",
        "https://localhost.example/",
        "https://1password.example/",
        "https://7.example/",
    ],
)
def test_ordinary_urls_pass(url):
    check(url)


@pytest.mark.parametrize("url", ["http://127.0.0.1:8080/", "https://[::1]/", "http://[::1]/"])
def test_an_allowed_network_makes_its_literal_addresses_pass(url):
    check(url, LOOPBACK)
    with pytest.raises(ValueError):
        check(url)


def test_plain_http_needs_an_allowed_network():
    check("http://siem.internal/", LOOPBACK)
    with pytest.raises(ValueError, match="plain http"):
        check("http://siem.internal/")
    with pytest.raises(ValueError, match="plain http"):
        check("http://1.1.1.1/", LOOPBACK)


def test_what_is_wrong_does_not_show_the_rest_of_the_url():
    with pytest.raises(ValueError) as caught:
        check("https://10.0.0.1/services/TOKEN")
    assert "10.0.0.1" in str(caught.value)
    assert "TOKEN" not in str(caught.value)


@given(st.text())
def test_any_text_is_a_url_or_a_value_error(text):
    try:
        url = parse_url("https://" + text)
    except ValueError:
        return
    assert url.scheme == "https"
    assert url.raw_host
    assert url.raw_user is None


@pytest.mark.parametrize("proxy", ["http://proxy.example:3128", "http://user:pa%40ss@10.0.0.1:80/"])
def test_a_proxy_is_an_address_and_may_hold_credentials(proxy):
    assert str(parse_proxy(proxy)).rstrip("/") == proxy.removesuffix(":80/")


@given(st.text())
def test_any_text_is_a_proxy_or_a_value_error_that_does_not_show_it(text):
    told = ""
    try:
        url = parse_proxy("http://user:PASSWORD@" + text)
    except ValueError as error:
        told = str(error)
    else:
        assert url.raw_host
    assert "PASSWORD" not in told
