"""The samples of docs/soar/webhooks.md, and messages that they are to take or to refuse."""

from __future__ import annotations

import base64
import re
import time
from datetime import UTC, datetime
from pathlib import Path

from tocsin_plugins.webhook.signing import Ed25519Signer, SharedSecret, Signer, signature_headers

PAGE = (Path(__file__).parents[1] / "docs/soar/webhooks.md").read_text(encoding="utf-8")
SECRET = "whsec_" + base64.b64encode(b"k" * 32).decode()
OLDER_SECRET = "whsec_" + base64.b64encode(b"o" * 32).decode()
KEY = "whsk_" + base64.b64encode(b"k" * 32).decode()
OLDER_KEY = "whsk_" + base64.b64encode(b"o" * 32).decode()
CURRENT = (SharedSecret.decode(SECRET), Ed25519Signer.decode(KEY))
OLDER = (SharedSecret.decode(OLDER_SECRET), Ed25519Signer.decode(OLDER_KEY))
NO_SECRET = SharedSecret(b"")
"""What anybody can sign with."""
BODY = '{"event_type":"incident-alert","data":{"title":"é"}}'.encode()


def samples(language: str) -> list[str]:
    """Return every sample in a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)


def headers(*signers: Signer, moment: float | None = None) -> dict[str, str]:
    """Return the headers of a message with the body, signed by each."""
    moment = moment or time.time()
    return signature_headers(signers, "01JD5N0T2Q", datetime.fromtimestamp(moment, UTC), BODY)
