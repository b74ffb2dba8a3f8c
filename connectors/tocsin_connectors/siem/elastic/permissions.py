"""Permission check of an Elastic API key."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from tocsin import Api, Broken, CredentialsRefused
from tocsin_connectors.siem.elastic.client import CASES, FIND, OWNER
from tocsin_connectors.siem.elastic.settings import ElasticSettings
from tocsin_connectors.siem.elastic.write_back import NOTE
from tocsin_connectors.siem.indices.client import IndexClient
from tocsin_connectors.siem.permissions import PermissionProbe, change_absent, find_refused
from tocsin_connectors.siem.records import child, text

PRIVILEGES = "/_security/user/_has_privileges"
_MISSING_CASE = "00000000-0000-0000-0000-000000000000"
_STATUS_PRIVILEGES = ["write", "maintenance"]
"""https://www.elastic.co/docs/solutions/security/detect-and-alert/detections-requirements"""


async def find_permission_problems(
    elasticsearch: IndexClient, kibana: Api, settings: ElasticSettings
) -> tuple[str, tuple[str, ...]]:
    """Return the owner of the key, and the problems that the operator has to fix."""
    username, problems = await _check_privileges(elasticsearch, settings)
    if "cases" in settings.incidents:
        try:
            await kibana.get(FIND, owner=OWNER, perPage=1, page=1)
        except CredentialsRefused as error:
            problems += (f"{username} cannot read cases in the space {settings.space}: {error}",)
    if settings.write_back:
        problems += tuple(
            [f"{username} cannot {action}" for action in await _find_unwritable(kibana, settings)]
        )
    return username, problems


async def _find_unwritable(kibana: Api, settings: ElasticSettings) -> list[str]:
    """Return the missing write permissions, found with writes that Kibana rejects.

    Kibana checks permissions before it looks up the case and before it parses the note.
    """
    comment = {"type": "user", "owner": OWNER, "comment": "Permission check by Tocsin."}
    tried: dict[str, PermissionProbe] = {}
    if "cases" in settings.incidents:
        case = partial(_try_write, kibana, "POST", f"{CASES}/{_MISSING_CASE}/comments", comment)
        tried[f"write comments to cases in the space {settings.space}"] = case
    if "alerts" in settings.incidents:
        note = partial(_try_write, kibana, "PATCH", NOTE, {})
        tried[f"write notes to alerts in the space {settings.space}"] = note
    return await find_refused(tried)


async def _try_write(kibana: Api, method: str, path: str, content: Any) -> None:
    await change_absent(kibana.request(method, path, json=content))


async def _check_privileges(
    cluster: IndexClient, settings: ElasticSettings
) -> tuple[str, tuple[str, ...]]:
    wanted = [{"names": list(settings.event_indexes), "privileges": ["read"]}]
    if "alerts" in settings.incidents:
        more = _STATUS_PRIVILEGES if settings.sets_status else []
        wanted.append({"names": [settings.alerts_index], "privileges": ["read", *more]})
    answer = await cluster.ask("POST", PRIVILEGES, json={"index": wanted})
    body = answer.json if isinstance(answer.json, dict) else {}
    username = text(body, "username")
    if username is None or not isinstance(body.get("has_all_requested"), bool):
        raise Broken(
            f"POST {PRIVILEGES} returned a response without `username` and `has_all_requested`"
        )
    return username, tuple(_describe_missing_privileges(username, child(body, "index")))


def _describe_missing_privileges(username: str, indexes: dict[str, Any]) -> Iterator[str]:
    for name in indexes:
        for privilege, is_there in child(indexes, name).items():
            if is_there is not True:
                yield f"{username} lacks the privilege {privilege} on {name}"
