"""Reports as JSON, Markdown, HTML and plain text.

What a report says is put in order once (`parts`); each form only writes it down, and escapes it.
"""

from tocsin.reports.document import from_json, to_json
from tocsin.reports.html import CONTENT_SECURITY_POLICY, to_html
from tocsin.reports.markdown import to_markdown
from tocsin.reports.text import session_document_text, to_short_text, to_text

__all__ = [
    "CONTENT_SECURITY_POLICY",
    "from_json",
    "session_document_text",
    "to_html",
    "to_json",
    "to_markdown",
    "to_short_text",
    "to_text",
]
