"""A week of EVE records generated from `scenarios.toml`; each number gives another week."""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Iterator
from ipaddress import ip_network
from pathlib import Path
from random import Random
from typing import Any

NOW = "@now"  # placeholder that the feed replaces by the time
DAYS = 7
BACKGROUND = 0.4  # other events for each alert
DAMAGE_EVERY = 40

_CONTENT = tomllib.loads(Path(__file__).with_name("scenarios.toml").read_text(encoding="utf-8"))
_DAMAGED = (
    '{"timestamp":"@now","flow_id":1187,"in_iface":"eth1","event_type":"ale',
    '{"timestamp":"not set","event_type":"alert","alert":{"gid":1,"signature_id":1000101}}',
    '{"timestamp":"@now","event_type":"alert","alert":{"signature":"LOCAL rule without a number"}}',
)


def week(number: int) -> list[str]:
    """Return the lines of one week in the order of writing."""
    chance = Random(number)
    lines: list[str] = []
    for count, alert in enumerate(_alerts(chance), 1):
        lines.append(alert)
        if chance.random() < BACKGROUND:
            lines.append(_record(chance.choice(_CONTENT["background"]), chance))
        if count % DAMAGE_EVERY == DAMAGE_EVERY // 2:
            lines.append(_DAMAGED[count // DAMAGE_EVERY % len(_DAMAGED)])
    return lines


def _alerts(chance: Random) -> list[str]:
    alerts = [
        alert
        for scenario in _CONTENT["scenario"]
        for _ in range(scenario["bursts"])
        for alert in _burst(scenario, chance)
    ]
    return [line for _, line in sorted(alerts)]


def _burst(scenario: dict[str, Any], chance: Random) -> Iterator[tuple[float, str]]:
    """Yield alerts of one rule from one source, each with its time in days since Monday."""
    begin = scenario["day"] if "day" in scenario else chance.randrange(DAYS)
    moment = begin + chance.random()
    source = _host(scenario["from"], chance)
    for _ in range(chance.randint(1, scenario["alerts"])):
        yield moment, _record(scenario, chance, source)
        moment += chance.expovariate(100)


def _record(scenario: dict[str, Any], chance: Random, source: str | None = None) -> str:
    record = {
        "timestamp": NOW,
        "flow_id": chance.getrandbits(50),
        "in_iface": "eth1",
        "event_type": "alert",
        "src_ip": source or _host(scenario["from"], chance),
        "src_port": chance.randint(32768, 60999),
        "dest_ip": _host(scenario["to"], chance),
        "dest_port": scenario["port"],
        "proto": scenario.get("proto", "TCP"),
        **scenario.get("event", {}),
    }
    if "sid" in scenario:
        record["alert"] = _alert(scenario)
    return _filled(json.dumps(record, separators=(",", ":")), chance)


def _host(group: str, chance: Random) -> str:
    """Return the address of one of a group's hosts."""
    network = ip_network(chance.choice(_CONTENT["hosts"][group]))
    inside = range(1, network.num_addresses - 1) or range(1)
    return str(network[chance.choice(inside)])


def _alert(scenario: dict[str, Any]) -> dict[str, Any]:
    words = {"signature_severity": "severity", "mitre_technique_id": "technique", "cve": "cve"}
    return {
        "action": "allowed",
        "gid": 1,
        "signature_id": scenario["sid"],
        "rev": 1,
        "signature": scenario["signature"],
        "category": scenario["category"],
        "severity": scenario["priority"],
        "metadata": {word: [scenario[key]] for word, key in words.items() if key in scenario},
    }


def _filled(line: str, chance: Random) -> str:
    """Return the line with a random value for each `{...}`."""
    token = f"{chance.getrandbits(32):08x}"
    digest = hashlib.sha256(token.encode()).hexdigest()
    words = {"hex": token, "md5": digest[:32], "label": digest[:60], "sha256": digest}
    for name, word in words.items():
        line = line.replace(f"{{{name}}}", word)
    return line
