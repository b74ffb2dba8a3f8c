"""Entities and their roles in the output fields of Falco alerts.

https://falco.org/docs/reference/rules/supported-fields/, and for the plugins
https://github.com/falcosecurity/plugins (k8saudit, cloudtrail, okta, github)
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from tocsin import Entity, EntityKind
from tocsin_connectors.siem.entity_fields import FieldContent, FieldTable, TableFinds, parse_field
from tocsin_connectors.siem.records import EntityRoles, child, text, union

_MAX_ENTITIES = 200
_CONNECTION = re.compile(r"(?P<client>.+):\d+->(?P<server>.+):\d+")
OUTPUT_FIELDS = FieldTable(
    sources={
        FieldContent.ADDRESS: ("fd.cip", "ka.sourceips", "ct.srcip", "okta.client.ip"),
        FieldContent.NAME: ("fd.cip.name",),
        FieldContent.USER: ("ka.user.name", "ct.user", "github.user"),
        FieldContent.PRINCIPAL: ("okta.actor.alternateID",),
    },
    targets={
        FieldContent.ADDRESS: ("fd.sip",),
        FieldContent.NAME: ("fd.sip.name",),
        FieldContent.PRINCIPAL: ("okta.target.user.alternateID",),
    },
    others={
        FieldContent.ADDRESS: ("fd.lip", "fd.rip"),
        FieldContent.HOST: ("evt.hostname",),
        FieldContent.USER: ("user.name", "user.loginname"),
        FieldContent.PROGRAM: (
            *("proc.exepath", "proc.name", "proc.pexepath", "proc.pname", "proc.aexepath"),
        ),
        FieldContent.FILE: ("fs.path.name", "fs.path.source", "fs.path.target"),
        FieldContent.CLOUD_RESOURCE: ("ct.resources", "ct.request.arn", "github.repo"),
    },
)
"""Fields of system calls (`fd`, `fs`, `proc`, `user`), and of the plugins."""
_HOST_CONTAINER = "host"
"""ID of what runs outside of containers."""
_UNKNOWN = "<NA>"


def get_fields(record: dict[str, Any]) -> dict[str, Any]:
    """Return the output fields that have a value."""
    fields = child(record, "output_fields")
    return {name: value for name, value in fields.items() if value != _UNKNOWN}


def find_machines(record: dict[str, Any]) -> tuple[Entity, ...]:
    """Return the host, and the pod and the container in which a system call was made."""
    fields = get_fields(record)
    host = parse_field(FieldContent.HOST, text(record, "hostname") or "")
    return union([host, _find_workload(fields)])


def _find_workload(fields: dict[str, Any]) -> Iterator[Entity]:
    space, pod = text(fields, "k8s.ns.name"), text(fields, "k8s.pod.name")
    container = text(fields, "container.id")
    if pod:
        yield from parse_field(FieldContent.CLOUD_RESOURCE, f"{space}/{pod}" if space else pod)
    if container and container != _HOST_CONTAINER:
        yield from parse_field(FieldContent.CLOUD_RESOURCE, container)


def find_entities(record: dict[str, Any]) -> TableFinds:
    """Return the entities of an alert, with their roles.

    Of a connection, the roles are those of its ends. Anything else comes from the host, pod and
    container where the process runs.
    """
    fields = get_fields(record)
    found = OUTPUT_FIELDS.find(fields, _MAX_ENTITIES)
    machines = find_machines(record)
    ends = _find_connection(fields)
    objects = tuple(_find_audited_object(fields))
    sources, targets = (
        union([found.roles.sources, ends.sources]),
        union([found.roles.targets, ends.targets, objects]),
    )
    if not sources:
        sources = machines
    entities = [machines, found.entities, ends.sources, ends.targets, objects, _find_file(fields)]
    return TableFinds(union(entities)[:_MAX_ENTITIES], EntityRoles(sources, targets))


def _find_connection(fields: dict[str, Any]) -> EntityRoles:
    """Return client and server in the name of a socket, such as `192.0.2.7:40000->...`."""
    match = _CONNECTION.fullmatch(text(fields, "fd.name") or "")
    if match is None:
        return EntityRoles()
    client, server = (
        tuple(parse_field(FieldContent.ADDRESS, match[side].removeprefix("::ffff:")))
        for side in ("client", "server")
    )
    return EntityRoles(client, server)


def _find_file(fields: dict[str, Any]) -> Iterator[Entity]:
    name = text(fields, "fd.name") or ""
    if name.startswith("/") and text(fields, "fd.type") in {None, "file"}:
        yield Entity(EntityKind.FILE, name)


def _find_audited_object(fields: dict[str, Any]) -> Iterator[Entity]:
    """Yield the object of a Kubernetes audit event, as namespace, kind and name."""
    parts = [text(fields, f"ka.target.{part}") for part in ("namespace", "resource", "name")]
    if parts[1] and parts[2]:
        yield from parse_field(FieldContent.CLOUD_RESOURCE, "/".join(filter(None, parts)))
