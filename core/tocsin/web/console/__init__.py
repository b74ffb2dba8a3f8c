"""The console: pages for people, rendered on the server.

A page asks the endpoints of the API for what it shows, and an action is an endpoint called with
what a form holds; so whatever can be seen or done here can be over HTTP too, by the same functions.
"""

from tocsin.web.console.routes import add_console

__all__ = ["add_console"]
