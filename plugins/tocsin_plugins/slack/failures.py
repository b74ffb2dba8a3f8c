"""Slack's errors by kind: transient, configuration or permanent.

Each method of the Web API lists its errors
(https://docs.slack.dev/reference/methods/chat.postMessage). For the errors of incoming webhooks,
see https://docs.slack.dev/messaging/sending-messages-using-incoming-webhooks. Tocsin retries after
unlisted errors, because Slack adds errors from time to time.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from tocsin import CredentialsRefused, Misconfigured, PluginFailure, Refused, TryLater

_SHOWN = 300
_THROTTLED = frozenset({"ratelimited", "rate_limited", "message_limit_exceeded"})
_ARCHIVED = frozenset({"is_archived", "channel_is_archived"})
_NEW_TOKEN = "copy the bot token again from the app's OAuth & Permissions page"  # noqa: S105 - words
_NEW_WEBHOOK = "create a new webhook on the app's Incoming Webhooks page"
_ALLOW = "ask an admin of the workspace to allow this request"
_CREDENTIALS: Mapping[str, str] = {
    "account_inactive": f"the app was removed, or its bot was deactivated; {_NEW_TOKEN}",
    "invalid_auth": f"Slack rejects the token, or the node's IP address; {_NEW_TOKEN}",
    "not_allowed_token_type": f"this is not a bot token; {_NEW_TOKEN}",
    "not_authed": f"Slack did not receive a token; {_NEW_TOKEN}",
    "token_expired": "the app uses token rotation, which Tocsin does not support; use another app",
    "token_revoked": f"the token was revoked; {_NEW_TOKEN}",
    "invalid_token": f"the webhook is unknown; {_NEW_WEBHOOK}",
    "no_active_hooks": f"the webhook was removed; {_NEW_WEBHOOK}",
    "no_service": f"the webhook was removed or disabled; {_NEW_WEBHOOK}",
    "no_service_id": f"the webhook is unknown; {_NEW_WEBHOOK}",
    "no_team": f"the webhook's workspace is unknown; {_NEW_WEBHOOK}",
    "team_disabled": f"the webhook's workspace is not active; {_NEW_WEBHOOK}",
}
_CONFIGURATION: Mapping[str, str] = {
    "channel_not_found": "the channel does not exist, or it is private and the app was not "
    "invited; check the channel ID, and invite the app",
    "not_in_channel": "invite the app to the channel: there, send /invite with the app's name",
    "no_permission": "invite the app to the channel: there, send /invite with the app's name",
    "access_denied": _ALLOW,
    "accesslimited": _ALLOW,
    "action_prohibited": _ALLOW,
    "app_access_restricted": _ALLOW,
    "channel_is_limited_access": _ALLOW,
    "ekm_access_denied": _ALLOW,
    "enterprise_is_restricted": _ALLOW,
    "messages_tab_disabled": "the app does not accept direct messages; use a channel",
    "posting_to_general_channel_denied": _ALLOW,
    "restricted_action": _ALLOW,
    "restricted_action_non_threadable_channel": "the channel does not support threads; "
    "use another channel",
    "restricted_action_read_only_channel": _ALLOW,
    "restricted_action_thread_only_channel": "the channel accepts only replies; "
    "use another channel",
    "team_access_not_granted": _ALLOW,
    "team_not_found": "install the app in the channel's workspace",
    "two_factor_setup_required": _ALLOW,
}
_PERMANENT = frozenset(
    {
        "attachment_payload_limit_exceeded",
        "cannot_reply_to_message",
        "cant_update_message",
        "block_mismatch",
        "edit_window_closed",
        "invalid_arg_name",
        "invalid_arguments",
        "invalid_array_arg",
        "invalid_attachments",
        "invalid_blocks",
        "invalid_blocks_format",
        "invalid_json",
        "invalid_metadata_format",
        "invalid_metadata_schema",
        "invalid_payload",
        "is_inactive",
        "json_not_object",
        "markdown_text_conflict",
        "message_not_found",
        "metadata_must_be_sent_from_app",
        "metadata_too_large",
        "missing_text_or_fallback_or_attachments",
        "msg_blocks_too_long",
        "msg_too_long",
        "no_text",
        "restricted_action_thread_locked",
        "thread_not_found",
        "too_many_attachments",
        "user_not_found",
    }
)


def build_failure(
    error: str,
    document: Mapping[str, Any],
    *,
    status: int,
    response: bytes,
    after: timedelta | None = None,
) -> PluginFailure:
    """Return the exception for an error that Slack returned in `document`."""
    message = f"Slack returned {error[:_SHOWN]}"
    if error in _ARCHIVED:
        remedy = "the channel is archived; unarchive it, or use another channel"
        return Refused(f"{message}: {remedy}", unwanted=True, status=status, response=response)
    if error in _CREDENTIALS:
        remedy = _CREDENTIALS[error]
        return CredentialsRefused(f"{message}: {remedy}", status=status, response=response)
    if needed := find_remedy(error, document):
        return Misconfigured(f"{message}: {needed}", status=status, response=response)
    if error in _PERMANENT:
        return Refused(f"{message}{_details(document)}", status=status, response=response)
    throttled = error in _THROTTLED
    return TryLater(message, after=after, throttled=throttled, status=status, response=response)


def find_remedy(error: str, document: Mapping[str, Any]) -> str | None:
    """Return how to fix a configuration problem; None if the error is of another kind."""
    if error == "missing_scope":
        return describe_missing_scope(str(document.get("needed") or "required by Slack")[:_SHOWN])
    return _CONFIGURATION.get(error)


def describe_missing_scope(scope: str) -> str:
    """Return how to add a scope that the bot lacks."""
    return (
        f"the bot lacks the scope {scope}; add the scope on the app's OAuth & Permissions page, "
        "and install the app again"
    )


def _details(document: Mapping[str, Any]) -> str:
    """Return Slack's messages about rejected blocks, with their locations."""
    metadata = document.get("response_metadata")
    messages = metadata.get("messages") if isinstance(metadata, Mapping) else None
    details = document.get("errors") or messages
    if not isinstance(details, list) or not details:
        return ""
    return f": {'; '.join(map(str, details))}"[:_SHOWN]
