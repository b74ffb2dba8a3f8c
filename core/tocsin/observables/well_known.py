"""Well-known values that say nothing about an incident."""

from __future__ import annotations

from ipaddress import ip_network

NETWORKS = tuple(
    map(
        ip_network,
        (
            # IANA's registries of special-purpose addresses: this host, loopback, benchmarking,
            # multicast, broadcast. Documentation networks are not listed, since samples use them.
            *("0.0.0.0/8", "127.0.0.0/8", "198.18.0.0/15", "224.0.0.0/4", "240.0.0.0/4"),
            *("::/128", "::1/128", "ff00::/8"),
            # metadata services of clouds
            *("169.254.169.254/32", "fd00:ec2::254/128"),
            # public resolvers: Google, Cloudflare, Quad9, OpenDNS
            *("8.8.8.8/32", "8.8.4.4/32", "2001:4860:4860::8888/128", "2001:4860:4860::8844/128"),
            *("1.1.1.1/32", "1.0.0.1/32", "2606:4700:4700::1111/128", "2606:4700:4700::1001/128"),
            *("9.9.9.9/32", "149.112.112.112/32", "2620:fe::fe/128", "2620:fe::9/128"),
            *("208.67.222.222/32", "208.67.220.220/32"),
        ),
    )
)

DOMAINS = frozenset(
    [
        # of special use (RFC 6761)
        *("invalid", "localhost", "localdomain", "in-addr.arpa", "ip6.arpa"),
        # updates, certificates and time of vendors
        *("windowsupdate.com", "update.microsoft.com", "delivery.mp.microsoft.com"),
        *("msftconnecttest.com", "msftncsi.com", "ctldl.windowsupdate.com", "login.live.com"),
        *(
            "events.data.microsoft.com",
            "settings-win.data.microsoft.com",
            "smartscreen.microsoft.com",
        ),
        *("swcdn.apple.com", "swscan.apple.com", "mesu.apple.com", "captive.apple.com"),
        *("connectivitycheck.gstatic.com", "update.googleapis.com", "clients2.google.com"),
        *("detectportal.firefox.com", "aus5.mozilla.org", "archive.ubuntu.com"),
        *("security.ubuntu.com", "deb.debian.org", "security.debian.org", "pool.ntp.org"),
        *("time.windows.com", "time.apple.com", "ocsp.digicert.com", "crl3.digicert.com"),
        *("crl4.digicert.com", "ocsp.pki.goog", "crl.microsoft.com", "o.lencr.org", "dns.google"),
        *("one.one.one.one", "attack.mitre.org", "nvd.nist.gov", "cve.org"),
    ]
)
"""Well-known domains, including their subdomains."""

_EMPTY_SHA512 = (
    "cf83e1357eefb8bdf1542850d66d8007d620e4050b5715dc83f4a921d36ce9ce"
    "47d0d13c5d85f2b0ff8318d2877eec2f63b931bd47417a81a538327af927da3e"
)
VALUES = frozenset(
    [
        # the hashes of the empty file: MD5, SHA-1, SHA-256, SHA-512
        "d41d8cd98f00b204e9800998ecf8427e",
        "da39a3ee5e6b4b0d3255bfef95601890afd80709",
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        _EMPTY_SHA512,
        # accounts that every Windows has (Microsoft, "Well-known SIDs")
        *("system", "nt authority\\system", "s-1-5-18", "local service", "network service"),
        *("nt authority\\local service", "s-1-5-19", "nt authority\\network service", "s-1-5-20"),
        *("nt authority\\anonymous logon", "anonymous logon", "s-1-5-7", "s-1-0-0"),
        *("nt authority\\iusr", "window manager\\dwm-1", "font driver host\\umfd-0"),
        *("/dev/null", "nul"),
    ]
)
"""Well-known values in lower case."""
