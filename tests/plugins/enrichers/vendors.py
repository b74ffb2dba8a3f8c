"""Simulated vendor servers with hand-written responses."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any, Self

from aiohttp import web

from tocsin.testing.server import LoopbackServer

KEY = "k3y-of-the-tests"


class Vendor:
    """One vendor's API. `known` is what it knows, by value; `fault` is answered instead."""

    header = "Authorization"
    """Where it expects the key."""
    refusal = 401
    """How it answers another key."""

    def __init__(self) -> None:
        self.known: dict[str, Any] = {}
        self.fault: web.Response | None = None
        self.requests: list[web.Request] = []
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._serve)
        self._server = LoopbackServer(app)

    @property
    def url(self) -> str:
        return self._server.url

    @property
    def settings(self) -> Mapping[str, Any]:
        """What an enricher is told to reach it."""
        return {"url": self.url, "api_key": KEY}

    async def __aenter__(self) -> Self:
        await self._server.__aenter__()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._server.__aexit__(*error)

    async def _serve(self, request: web.Request) -> web.Response:
        self.requests.append(request)
        if self.fault is not None:
            return web.Response(
                status=self.fault.status, body=self.fault.body, headers=self.fault.headers
            )
        if self.header and request.headers.get(self.header) != KEY:
            return web.json_response({"message": "bad key"}, status=self.refusal)
        return await self.answer(request)

    async def answer(self, request: web.Request) -> web.Response:
        """Return what it says of what is asked for."""
        raise NotImplementedError


class AbuseIpDbServer(Vendor):
    """https://docs.abuseipdb.com/#check-endpoint."""

    header = "Key"

    async def answer(self, request):
        address = request.query["ipAddress"]
        assert request.path == "/check"
        report = {
            "ipAddress": address,
            "isPublic": True,
            "ipVersion": 6 if ":" in address else 4,
            "isWhitelisted": False,
            "abuseConfidenceScore": 0,
            "countryCode": "NL",
            "usageType": "Data Center/Web Hosting/Transit",
            "isp": "Example Hosting",
            "domain": "hosting.example",
            "hostnames": [],
            "isTor": False,
            "totalReports": 0,
            "numDistinctUsers": 0,
            "lastReportedAt": None,
        }
        return web.json_response({"data": report | self.known.get(address, {})})


class VirusTotalServer(Vendor):
    """https://docs.virustotal.com/reference/overview."""

    header = "x-apikey"

    async def answer(self, request):
        _, kind, name = request.path.split("/", 2)
        assert kind in ("ip_addresses", "domains", "urls", "files")
        if kind == "urls":
            name = base64.urlsafe_b64decode(name + "=" * (-len(name) % 4)).decode()
        if name == "8.8.8.8":
            self.known.setdefault(name, {})
        if name not in self.known:
            error = {"code": "NotFoundError", "message": f"{name} not found"}
            return web.json_response({"error": error}, status=404)
        stats = {"malicious": 0, "suspicious": 0, "harmless": 60, "undetected": 10, "timeout": 1}
        attributes = {"last_analysis_stats": stats, "last_analysis_date": 1_790_000_000}
        return web.json_response({"data": {"attributes": attributes | self.known[name]}})


class GreyNoiseServer(Vendor):
    """https://docs.greynoise.io/reference/getcommunityip."""

    header = "key"

    async def answer(self, request):
        if request.path == "/ping":
            return web.json_response({"message": "pong", "offering": "community"})
        address = request.path.removeprefix("/v3/community/")
        answer = {"ip": address, "noise": False, "riot": False, "message": "Success"}
        if address not in self.known:
            return web.json_response(answer | {"message": "IP not observed"}, status=404)
        return web.json_response(answer | self.known[address])


class MispServer(Vendor):
    """https://www.misp-project.org/openapi/: a value finds attributes that hold it."""

    refusal = 403

    async def answer(self, request):
        if request.path == "/servers/getVersion":
            return web.json_response({"version": "2.5.9", "perm_sync": False})
        assert (request.method, request.path) == ("POST", "/attributes/restSearch")
        sought = await request.json()
        self.sought = sought
        attributes = [
            self._attribute(**attribute)
            for value in sought["value"]
            for attribute in self.known.get(value, ())
        ]
        return web.json_response({"response": {"Attribute": attributes[: sought["limit"]]}})

    def _attribute(self, value, event="7", info="Phishing wave", tags=(), **parts):
        return {
            "id": "1",
            "event_id": event,
            "category": "Network activity",
            "type": "ip-dst",
            "to_ids": True,
            "uuid": f"5f0f7a4e-0000-4000-8000-{len(info):012}",
            "timestamp": "1790000000",
            "comment": "",
            "value": value,
            "Event": {"id": event, "info": info, "threat_level_id": "2", "date": "2026-09-21"},
            "Tag": [{"name": tag, "colour": "#fff"} for tag in tags],
            **parts,
        }


class RdapServer(Vendor):
    """RFC 9082 and 9083, and IANA's registries in front of it (RFC 9224)."""

    header = ""

    @property
    def settings(self):
        return {"bootstrap_url": f"{self.url}/bootstrap"}

    async def answer(self, request):
        if request.path.startswith("/bootstrap/"):
            keys = {
                "dns.json": ["com", "uk", "example"],
                "ipv4.json": ["198.51.100.0/24"],
                "ipv6.json": ["2001:db8::/32"],
            }[request.path.rsplit("/", 1)[1]]
            services = [[keys, [f"{self.url}/rdap/"]]]
            return web.json_response({"version": "1.0", "services": services})
        found = self.known.get(request.path.removeprefix("/rdap/"))
        if isinstance(found, web.Response):
            return web.Response(status=found.status, headers=found.headers)
        if found is None:
            return web.json_response({"errorCode": 404, "title": "Not found"}, status=404)
        return web.json_response(found, content_type="application/rdap+json")
