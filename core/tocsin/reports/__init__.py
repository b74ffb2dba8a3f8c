"""Reports as JSON, Markdown, HTML and plain text.

`parts` arranges the content once. Each format only renders and escapes it.
"""

from tocsin.reports.blocks import MAX_ROWS
from tocsin.reports.document import from_json, to_json
from tocsin.reports.graph import draw_graph
from tocsin.reports.html import CONTENT_SECURITY_POLICY, to_html
from tocsin.reports.markdown import escape_markdown, to_markdown
from tocsin.reports.plain import to_plain_text
from tocsin.reports.svg import EdgeCurve
from tocsin.reports.text import session_document_text, to_short_text, to_text
from tocsin.reports.text_format import format_number, format_signed, format_time
from tocsin.reports.timeline import draw_timeline

__all__ = [
    "CONTENT_SECURITY_POLICY",
    "MAX_ROWS",
    "EdgeCurve",
    "draw_graph",
    "draw_timeline",
    "escape_markdown",
    "format_number",
    "format_signed",
    "format_time",
    "from_json",
    "session_document_text",
    "to_html",
    "to_json",
    "to_markdown",
    "to_plain_text",
    "to_short_text",
    "to_text",
]
