"""Request Tracker on loopback, as Debian packages it, set up as its page in the docs says."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from shutil import which

QUEUE, REQUESTOR, OWNER = "SOC / incidents", "soc@example.com", "j.doe"
SERVER = Path("/usr/share/request-tracker5/libexec/rt-server")
SETUP = which("rt-setup-database-5")
_START_SECONDS = 60
_SITE = """
Set($rtname, 'soc.test');
Set($Organization, 'soc.test');
Set($WebDomain, '127.0.0.1');
Set($WebPort, {port});
Set($DatabaseType, 'SQLite');
Set($DatabaseName, '{folder}/rt.sqlite');
Set($MailCommand, 'testfile');
Set($MasonDataDir, '{folder}/mason');
Set($MasonSessionDir, '{folder}/sessions');
Set($LogToSyslog, undef);
Set($LogToSTDERR, 'warning');
Set($Timezone, 'Europe/Berlin');
1;
"""
_CONTENT = """
@Queues = ({{ Name => '{queue}' }});
@Users = map {{ {{ Name => $_, Password => 'a password of RT', EmailAddress => "$_\\@example.com",
    Privileged => 1 }} }} ('tocsin', '{owner}', 'stranger');
@CustomFields = (
    {{ Name => 'Tocsin', Type => 'FreeformSingle', Queue => ['{queue}'] }},
    {{ Name => 'Source', Type => 'FreeformSingle', Queue => ['{queue}'] }},
    {{ Name => 'Labels', Type => 'FreeformMultiple', Queue => ['{queue}'] }},
);
@ACL = (
    (map {{ {{ UserId => 'tocsin', Queue => '{queue}', Right => $_ }} }} qw({rights})),
    (map {{ {{ UserId => 'tocsin', Right => $_ }} }} qw(SeeCustomField ModifyCustomField)),
    (map {{ {{ UserId => '{owner}', Queue => '{queue}', Right => $_ }} }} qw(OwnTicket ShowTicket)),
);
@Final = (sub {{
    for my $name ('tocsin', 'stranger') {{
        my $token = RT::AuthToken->new(RT->SystemUser);
        my $owner = RT::CurrentUser->new($name)->Id;
        my (undef, undef, $text) = $token->Create(Owner => $owner, Description => 'Tocsin');
        open my $file, '>', "{folder}/token-$name" or die $!;
        print $file $text;
        close $file;
    }}
}});
1;
"""
_RIGHTS = "SeeQueue CreateTicket ShowTicket ShowTicketComments CommentOnTicket ModifyTicket"


@dataclass(frozen=True, slots=True)
class RunningRequestTracker:
    """Running instance: its address, and the folder with its database."""

    url: str
    folder: Path

    def token(self, name: str = "tocsin") -> str:
        """Return the authentication token of a user."""
        return (self.folder / f"token-{name}").read_text()


@contextmanager
def run_request_tracker(folder: Path) -> Iterator[RunningRequestTracker]:
    """Run an instance with its database in a folder."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    (folder / "sessions").mkdir()
    site, content = folder / "RT_SiteConfig.pm", folder / "content"
    site.write_text(_SITE.format(port=port, folder=folder))
    names = {"queue": QUEUE, "owner": OWNER, "rights": _RIGHTS}
    content.write_text(_CONTENT.format(folder=folder, **names))
    environment = os.environ | {
        "RT_SITE_CONFIG": str(site),
        "RT_SITE_CONFIG_DIR": str(folder / "none"),
    }
    _administer(environment, "--action", "init", "--skip-create")
    _administer(environment, "--action", "insert", "--datafile", str(content))
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(
            [SERVER, "--host", "127.0.0.1", "--port", str(port)],
            env=environment,
            stdout=log,
            stderr=log,
        )
        try:
            _wait_for(port, process, folder / "log")
            yield RunningRequestTracker(f"http://127.0.0.1:{port}", folder)
        finally:
            process.terminate()
            process.wait(20)


def _administer(environment: Mapping[str, str], *arguments: str) -> None:
    assert SETUP is not None
    command = [SETUP, *arguments, "--dba-password", ""]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def _wait_for(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + _START_SECONDS
    while time.monotonic() < end and process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise AssertionError(log.read_text())
