"""Tocsin: what a plugin author imports.

The names are in `__init__.pyi`; the module behind a name is imported when the name is first used.
"""

import lazy_loader

_load, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> object:
    if name == "__version__":
        from importlib.metadata import version

        return version("tocsin")
    return _load(name)
