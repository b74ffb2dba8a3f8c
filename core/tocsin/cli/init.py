"""`tocsin init`: a first configuration and the data directory."""

from __future__ import annotations

import shlex
import stat
import sysconfig
from importlib.resources import files
from pathlib import Path

from tocsin.cli.output import print_text
from tocsin.errors import OperatorError
from tocsin.settings import PREFIX, Settings, load_settings

_PRIVATE = 0o700


def init() -> None:
    """Create plugins.toml and the data directory.

    Prints the next steps. Does not change existing files. To use other locations, set
    TOCSIN_PLUGINS_FILE and TOCSIN_DATA_DIR.
    """
    settings = load_settings()
    access = _prepare_data_dir(settings.data_dir)
    _write_plugins_file(settings.plugins_file)
    print_text(f"Configuration: {settings.plugins_file}")
    print_text(f"Data:          {settings.data_dir}/ ({access})")
    print_text()
    print_text(
        "Next, add a provider and a destination to the configuration. Then run these commands:"
    )
    for command, purpose in (
        ("check", "checks the configuration and all connections"),
        ("serve", f"starts the service, with the console at {settings.public_url}/"),
        (
            "admin sign-in-link",
            "prints a link that signs you in to the console; run the command in another terminal",
        ),
    ):
        print_text(f"  {_variables(settings)}tocsin {command:<18} # {purpose}")


def _write_plugins_file(path: Path) -> None:
    """Write the first configuration; raises OperatorError if the file exists."""
    complete = Path(sysconfig.get_path("data")) / "share/tocsin/plugins.toml"
    where = str(complete) if complete.is_file() else "plugins.toml in the repository"
    text = files("tocsin.cli").joinpath("scaffold/plugins.toml").read_text(encoding="utf-8")
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text.replace("@COMPLETE@", where))
    except FileExistsError:
        raise OperatorError(
            f"{path} already exists and was not changed; edit it, or set {PREFIX}PLUGINS_FILE to "
            "another path"
        ) from None
    except OSError as error:
        raise OperatorError(f"cannot write {path}: {error.strerror}") from error


def _prepare_data_dir(folder: Path) -> str:
    """Create the folder, private to this user, if it is missing. Describe its permissions."""
    try:
        folder.mkdir(mode=_PRIVATE, parents=True, exist_ok=True)
    except OSError as error:
        raise OperatorError(f"cannot create {folder}: {error.strerror}") from error
    if stat.S_IMODE(folder.stat().st_mode) & ~_PRIVATE:
        return f"other users might have access: run `chmod 700 {shlex.quote(str(folder))}`"
    return "only you can read it"


def _variables(settings: Settings) -> str:
    """Return the variable assignments that the next commands need."""
    given = {"PLUGINS_FILE": settings.plugins_file, "DATA_DIR": settings.data_dir}
    defaults = {name: Settings.model_fields[name.lower()].default for name in given}
    return "".join(
        f"{PREFIX}{name}={shlex.quote(str(value))} "
        for name, value in given.items()
        if value != defaults[name]
    )
