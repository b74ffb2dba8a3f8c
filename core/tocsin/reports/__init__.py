"""Reports as JSON, Markdown, HTML and plain text.

What a report says is put in order once (`parts`); each form only writes it down, and escapes it.
"""

from tocsin.reports.blocks import SHOWN
from tocsin.reports.document import from_json, to_json
from tocsin.reports.graph import draw_graph
from tocsin.reports.html import CONTENT_SECURITY_POLICY, to_html
from tocsin.reports.markdown import escaped, to_markdown
from tocsin.reports.text import session_document_text, to_short_text, to_text
from tocsin.reports.text_format import number, signed
from tocsin.reports.timeline import draw_timeline

__all__ = [
    "CONTENT_SECURITY_POLICY",
    "SHOWN",
    "draw_graph",
    "draw_timeline",
    "escaped",
    "from_json",
    "number",
    "session_document_text",
    "signed",
    "to_html",
    "to_json",
    "to_markdown",
    "to_short_text",
    "to_text",
]
