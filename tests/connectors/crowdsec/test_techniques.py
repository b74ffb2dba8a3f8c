"""ATT&CK techniques of CrowdSec alerts."""

from __future__ import annotations

import pytest

from tocsin_connectors.siem.crowdsec.mapping import find_techniques

ADDRESS = {"scope": "Ip", "value": "203.0.113.7"}


def techniques(scenario, source=None, **changes):
    return list(find_techniques({"scenario": scenario, "source": source or ADDRESS, **changes}))


@pytest.mark.parametrize(
    ("scenario", "found"),
    [
        ("crowdsecurity/ssh-bf", ["T1110"]),
        ("crowdsecurity/asterisk_bf", ["T1110"]),
        ("crowdsecurity/http-bf-wordpress_bf_xmlrpc", ["T1110"]),
        ("crowdsecurity/kasm-bruteforce", ["T1110"]),
        ("crowdsecurity/dovecot-spam", ["T1110"]),
        ("crowdsecurity/ssh-bf_user-enum", ["T1110", "T1589"]),
        ("crowdsecurity/freeswitch-user-enumeration", ["T1589"]),
        ("crowdsecurity/http-probing", ["T1595"]),
        ("crowdsecurity/http-crawl-non_statics", ["T1595"]),
        ("firewallservices/pf-scan-multi_ports", ["T1595"]),
        ("crowdsecurity/http-backdoors-attempts", ["T1595"]),
        ("crowdsecurity/http-sensitive-files", ["T1595"]),
        ("crowdsecurity/http-xss-probbing", ["T1595"]),
        ("crowdsecurity/http-path-traversal-probing", ["T1595"]),
        ("acme/http-sqli", ["T1190"]),
        ("crowdsecurity/http-cve-2021-41773", ["T1190"]),
        ("crowdsecurity/CVE-2022-26134", ["T1190"]),
        ("crowdsecurity/vpatch-env-access", ["T1190"]),
        ("crowdsecurity/http-cve-probing", ["T1595"]),
        ("acme/php-webshell", ["T1505.003"]),
        ("crowdsecurity/impossible-travel", ["T1078"]),
        ("crowdsecurity/http-dos-random-uri", ["T1498"]),
        ("acme/http-ddos", ["T1498"]),
        ("crowdsecurity/postfix-spam", []),
        ("acme/bfg-dosing-scanner", []),
        ("manual 'ban' from 'tocsin' after ssh-bf", []),
        (None, []),
    ],
)
def test_scenario_names_imply_techniques(scenario, found):
    assert techniques(scenario) == found


def test_local_exploit_has_no_remote_technique():
    local = {"scope": "system_account", "value": "ann"}
    assert techniques("crowdsecurity/CVE-2021-4034", local) == []


def test_labels_override_scenario_names():
    labels = ["attack.T1110.001", "attack:t1078", "behavior:ssh:bruteforce"]
    assert techniques("crowdsecurity/http-probing", labels=labels) == ["T1110.001", "T1078"]
