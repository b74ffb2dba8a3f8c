from ipaddress import ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin.net.urls import check_url, parse_url

LOOPBACK = (ip_network("127.0.0.0/8"), ip_network("::1/128"))

MISLEADING = [
    "http://0/",
    "http://127.1/",
    "http://2130706433/",
    "http://0x7f000001/",
    "http://0x7f.1/",
    "http://0X7F.0.0.1/",
    "http://0177.0.0.1/",
    "http://127.0.0.1./",
    "http://127.0.0.01/",
    "http://[fe80::1%25eth0]/",
    "http://[fe80::1%eth0]/",
    "http://example.com@127.0.0.1/",
    "http://@127.0.0.1/",
    "http://:@127.0.0.1/",
    "http://user:password@example.com/",
    "http://127.0.0.1#@example.com/",
    "http://example.com/#",
    "http://127.0.0.1\\@example.com/",
    "http://127.0.0.1%2eexample.com/",
    "http://127.0.0.1%00.example.com/",
    "http://127.0.0.1%0d%0a.example.com/",
    "http://127.0.0.1\r\n.example.com/",
    "http://127.0.\t0.1/",
    "http://example.com/a b",
    "//127.0.0.1/",
    "http:/127.0.0.1/",
    "http:127.0.0.1",
    "http:///path",
    "127.0.0.1",
    "",
    "tcp://127.0.0.1/",
    "ws://127.0.0.1/",
    "wss://127.0.0.1/",
    "ftp://127.0.0.1/",
    "file:///etc/passwd",
    "gopher://127.0.0.1/",
    "unix:///run/docker.sock",
    "http+unix://%2Frun%2Fdocker.sock/",
    "http://example.com:0/",
    "http://example.com:99999/",
    "http://example.com:port/",
    "http://[::1",
    "http://[v1.a:b]/",
    "http://a..b/",
    "http://a,b/",
    "http://" + "a" * 64 + ".example/",
    "http://" + "a." * 127 + "aa/",
]


@pytest.mark.parametrize("url", MISLEADING)
def test_urls_that_mislead_are_refused_whatever_is_allowed(url):
    with pytest.raises(ValueError):
        check_url(url, [ip_network("0.0.0.0/0"), ip_network("::/0")])


FORBIDDEN = [
    "127.0.0.1",
    "127.255.255.254",
    "0.0.0.0",
    "[::1]",
    "[::]",
    "[::ffff:127.0.0.1]",
    "[::ffff:a9fe:a9fe]",
    "[::7f00:1]",
    "[::ffff:0:7f00:1]",
    "[::5efe:7f00:1]",
    "[64:ff9b::7f00:1]",
    "[64:ff9b:1::1]",
    "[2002:7f00:1::]",
    "[2001:0:4136:e378:8000:63bf:3f57:fdf2]",
    "[fec0::1]",
    "[fd00:ec2::254]",
    "[fd20:ce::254]",
    "169.254.169.254",
    "169.254.170.2",
    "100.100.100.200",
    "168.63.129.16",
    "192.0.0.192",
    "10.0.0.1",
    "172.16.0.1",
    "172.31.255.254",
    "192.168.0.1",
    "100.64.0.1",
    "192.88.99.1",
    "224.0.0.1",
    "239.255.255.250",
    "255.255.255.255",
    "①②⑦.⓪.⓪.①",
    "127。0。0。1",
    "\uff11\uff12\uff17.0.0.1",
]


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize("host", FORBIDDEN)
def test_literal_addresses_that_may_not_be_reached_are_refused_before_any_traffic(scheme, host):
    with pytest.raises(ValueError, match="may be reached; allow_networks names none"):
        check_url(f"{scheme}://{host}/latest/meta-data/", ())


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
    check_url(url, ())


@pytest.mark.parametrize("url", ["http://127.0.0.1:8080/", "https://[::1]/", "http://[::1]/"])
def test_an_allowed_network_makes_its_literal_addresses_pass(url):
    check_url(url, LOOPBACK)
    with pytest.raises(ValueError):
        check_url(url, ())


def test_plain_http_needs_an_allowed_network():
    check_url("http://siem.internal/", LOOPBACK)
    with pytest.raises(ValueError, match="plain http"):
        check_url("http://siem.internal/", ())
    with pytest.raises(ValueError, match="plain http"):
        check_url("http://1.1.1.1/", LOOPBACK)


@pytest.mark.parametrize("host", ["169.254.169.254", "[fd00:ec2::254]", "168.63.129.16"])
def test_metadata_services_are_refused_although_allowed(host):
    with pytest.raises(ValueError):
        check_url(f"https://{host}/", [ip_network("0.0.0.0/0"), ip_network("::/0")])


def test_what_is_wrong_does_not_show_the_rest_of_the_url():
    with pytest.raises(ValueError) as caught:
        check_url("https://10.0.0.1/services/TOKEN", ())
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
