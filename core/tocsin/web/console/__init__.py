"""Web console, rendered on the server.

Pages read from the API endpoints, and actions call API endpoints with the content of a form. So
everything in the console is also available over the API, through the same functions.
"""

from tocsin.web.console.routes import RenderMissing, add_console

__all__ = ["RenderMissing", "add_console"]
