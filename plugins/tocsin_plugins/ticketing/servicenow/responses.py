"""ServiceNow responses and refusal reasons."""

from __future__ import annotations

from http import HTTPStatus

from tocsin import Broken, Json, Misconfigured, Refused, parse_json

_SHOWN = 1_000
_RULES = ("data policy", "business rule")
_ASLEEP = (
    "a developer instance that hibernates answers so: sign in at https://developer.servicenow.com "
    "to wake it"
)


def explain_refusal(refused: Refused) -> Refused:
    """Return the same refusal with ServiceNow's reason in place of the beginning of its answer.

    A data policy or business rule says no with 403 as well: that is no matter of credentials.
    """
    reason = _reason_in_body(refused.response)[:_SHOWN]
    if not reason:
        return refused
    kind = type(refused)
    if refused.status == HTTPStatus.FORBIDDEN and any(rule in reason.lower() for rule in _RULES):
        kind = Misconfigured
    words = f"{str(refused).partition(': ')[0]}: {reason}"
    return kind(words, status=refused.status, response=refused.response)


def expect_awake(broken: Broken) -> Broken:
    """Return the same error, with what helps where it is a page in place of an answer."""
    return Broken(f"{broken}; {_ASLEEP}") if "text/html" in str(broken) else broken


def expect_complete(answer: Json) -> Json:
    """Return an answer that is one; `Broken` where an error stands in it in spite of its status.

    That is how a transaction ends that was cancelled while it answered.
    """
    reason = _reason_in_json(answer)
    if reason:
        raise Broken(f"ServiceNow answered in part only: {reason[:_SHOWN]}")
    return answer


def _reason_in_body(body: bytes) -> str:
    try:
        return _reason_in_json(parse_json(body))
    except ValueError:
        return ""


def _reason_in_json(said: Json) -> str:
    match said:
        case {"error": {"message": message, **rest}}:
            detail = rest.get("detail")
            return f"{message}: {detail}" if detail else str(message)
        case {"error": str(message)}:
            return message
    return ""
