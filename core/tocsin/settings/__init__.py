"""Service settings: the `TOCSIN_*` environment variables and the files that they name."""

from tocsin.settings.environment import load_settings
from tocsin.settings.model import FILE_SUFFIX, PREFIX, SECRETS, NodeRole, Settings

__all__ = ["FILE_SUFFIX", "PREFIX", "SECRETS", "NodeRole", "Settings", "load_settings"]
