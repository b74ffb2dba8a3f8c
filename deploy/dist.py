"""Release builder: `make dist` writes all files to dist/.

It builds the wheel, the source distribution, the bill of materials, the Helm chart, the release
notes, an offline bundle for this platform and SHA256SUMS. It also builds the container image if
the machine can (deploy/build).
"""

from __future__ import annotations

import argparse
import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
PINNED = ROOT / "requirements/runtime.txt"
_INSTALL = """\
To install Tocsin {version} without a package index, for CPython {python} on {platform}:

  python3 -m venv /opt/tocsin
  /opt/tocsin/bin/pip install --no-index --find-links wheels --require-hashes -r requirements.txt
"""


def read_version() -> str:
    """Return the version from pyproject.toml."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return str(project["version"])


def cut_release_notes(changelog: str, version: str) -> str:
    """Return the changelog section for a version, or the unreleased changes if it has none."""
    parts = re.split(r"^## ", changelog, flags=re.MULTILINE)[1:]
    sections = {part.split()[0]: part.partition("\n")[2].strip() for part in parts}
    if version in sections:
        title, text = f"Tocsin {version}", sections[version]
    else:
        title, text = f"Tocsin {version} (not released)", sections["Unreleased"]
    return f"# {title}\n\n{text}\n"


def write_checksums(folder: Path) -> None:
    """Write the checksums of all files in the folder to SHA256SUMS, for `sha256sum --check`."""
    paths = sorted(path for path in folder.iterdir() if path.name != "SHA256SUMS")
    lines = [f"{_digest(path)}  {path.name}\n" for path in paths]
    (folder / "SHA256SUMS").write_text("".join(lines), encoding="ascii")


def build(output: Path, *, image: bool) -> None:
    """Build everything."""
    version = read_version()
    shutil.rmtree(output, ignore_errors=True)
    output.mkdir(parents=True)
    moment = _run("git", "log", "-1", "--format=%ct").strip()
    os.environ["SOURCE_DATE_EPOCH"] = moment  # so that builds of the same commit are identical
    _python("build", "--no-isolation", "--outdir", output, ROOT)
    notes = cut_release_notes((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), version)
    (output / f"tocsin-{version}-release-notes.md").write_text(notes, encoding="utf-8")
    _run("make", "sbom")
    shutil.move(ROOT / "sbom.cdx.json", output / f"tocsin-{version}.cdx.json")
    _pack(output / f"tocsin-{version}-chart.tgz", ROOT / "deploy/helm/tocsin", "tocsin", moment)
    _bundle(output, version, moment)
    if image:
        _run("deploy/build")
        shutil.move(ROOT / "dist/tocsin-image.tar", output / f"tocsin-{version}-image.tar")
    write_checksums(output)


def _bundle(output: Path, version: str, moment: str) -> None:
    """Write a bundle with the wheels of Tocsin and its pinned packages, and their hashes."""
    [wheel] = output.glob("*.whl")
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    machine = f"{platform.system().lower()}-{platform.machine()}"
    with tempfile.TemporaryDirectory() as work:
        folder = Path(work)
        wheels = folder / "wheels"
        wheels.mkdir()
        options = ("--quiet", "--disable-pip-version-check", "--only-binary", ":all:")
        hashed = ("--require-hashes", "--requirement", PINNED, "--dest", wheels)
        _python("pip", "download", *options, *hashed)
        shutil.copy(wheel, wheels)
        own = f"tocsin=={version} --hash=sha256:{_digest(wheel)}\n"
        pinned = PINNED.read_text(encoding="utf-8")
        (folder / "requirements.txt").write_text(pinned + own, encoding="utf-8")
        text = _INSTALL.format(version=version, python=python, platform=machine)
        (folder / "INSTALL").write_text(text, encoding="utf-8")
        name = f"tocsin-{version}-offline-cp{python.replace('.', '')}-{machine}"
        _pack(output / f"{name}.tar.gz", folder, name, moment)


def _pack(target: Path, folder: Path, name: str, moment: str) -> None:
    """Pack a folder as `name`; replace links by their files, and remove the owner."""

    def settle(member: tarfile.TarInfo) -> tarfile.TarInfo:
        member.mtime, member.uid, member.gid = int(moment), 0, 0
        member.uname = member.gname = ""
        member.mode = 0o755 if member.isdir() else 0o644
        return member

    with tarfile.open(target, "w:gz", dereference=True) as archive:
        archive.add(folder, name, filter=settle)


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _python(module: str, *arguments: str | Path) -> str:
    return _run(sys.executable, "-m", module, *arguments)


def _run(*command: str | Path) -> str:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        said = f"{done.stdout}\n{done.stderr}"
        raise SystemExit(f"failed: {' '.join(str(part) for part in command)}\n{said}")
    return done.stdout


def can_build_image() -> bool:
    """Return whether this machine can build the container image."""
    return os.geteuid() == 0 and all(shutil.which(tool) for tool in ("mmdebstrap", "buildah"))


def main(arguments: Sequence[str] | None = None) -> None:
    """Build a release and list its files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=ROOT / "dist")
    parser.add_argument("--no-image", action="store_true", help="leave out the container image")
    options = parser.parse_args(arguments)
    image = not options.no_image
    if image and not can_build_image():
        print("container image not built: run as root, with mmdebstrap and buildah installed")
        image = False
    build(options.output, image=image)
    for path in sorted(options.output.iterdir()):
        print(f"{path.stat().st_size:>12,}  {path.name}")


if __name__ == "__main__":
    main()
