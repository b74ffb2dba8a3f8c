"""The files in `deploy/`: units, container image, Compose files and reverse proxies."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from tocsin.settings import FILE_SUFFIX, PREFIX, SECRETS, Settings

DEPLOY = Path(__file__).parents[1] / "deploy"
OWN_USER = "65532"
_SETTINGS = {f"{PREFIX}{name.upper()}" for name in Settings.model_fields} | {
    f"{PREFIX}{name.upper()}{FILE_SUFFIX}" for name in SECRETS
}


def needs(tool: str) -> pytest.MarkDecorator:
    path = f"{os.environ['PATH']}:/usr/sbin"
    return pytest.mark.skipif(shutil.which(tool, path=path) is None, reason=f"there is no {tool}")


def run(*command: object, **options) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PATH": f"{os.environ['PATH']}:/usr/sbin"} | options.pop("env", {})
    return subprocess.run(
        [str(part) for part in command],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        **options,
    )


@needs("systemd-analyze")
@pytest.mark.parametrize(
    ("unit", "instance"),
    [("tocsin.service", "tocsin.service"), ("tocsin@.service", "tocsin@sync.service")],
)
def test_units_are_valid_and_sandboxed(tmp_path, unit, instance):
    text = (DEPLOY / "systemd" / unit).read_text()
    path = tmp_path / instance
    path.write_text(text.replace("/opt/tocsin/bin/tocsin", "/bin/true"))  # which has to exist
    verified = run("systemd-analyze", "verify", "--man=no", path)
    problems = [line for line in verified.stderr.splitlines() if "tocsin" in line]  # of this unit
    assert (verified.returncode, problems) == (0, [])
    rated = run("systemd-analyze", "security", "--offline=yes", "--threshold=15", path)
    assert rated.returncode == 0, rated.stdout


def test_variables_of_units_and_images_are_settings():
    for name in ("systemd/tocsin.service", "systemd/tocsin@.service", "Containerfile"):
        given = set(re.findall(r"\b(TOCSIN_[A-Z_]+)=", (DEPLOY / name).read_text()))
        assert len(given) > 2
        assert given <= _SETTINGS


@pytest.mark.parametrize("instance", ["", "main"])
def test_the_command_has_the_settings_and_the_key_of_the_service(tmp_path, instance):
    script = tmp_path / "tocsin"
    script.write_text(
        (DEPLOY / "systemd/tocsin").read_text().replace("/etc/tocsin/", f"{tmp_path}/")
    )
    url = "postgresql://t:p@db.example/tocsin?a=1&b=$HOME"
    (tmp_path / "environment").write_text(f"# a comment\n\nTOCSIN_DATABASE_URL={url}\n")
    (tmp_path / "main.environment").write_text('TOCSIN_PORT="9000"\n')
    (tmp_path / "credentials").mkdir()
    (tmp_path / "credentials/encryption.key").write_text("KEY\n")
    stub = tmp_path / "runuser"
    stub.write_text('#!/bin/sh\necho "$@"\nenv | grep ^TOCSIN_ | sort\n')
    stub.chmod(0o755)
    others = {name: value for name, value in os.environ.items() if not name.startswith("TOCSIN_")}
    done = subprocess.run(
        ["sh", script, "trace", "1"],
        env={**others, "TOCSIN_INSTANCE": instance, "PATH": f"{tmp_path}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines() == [
        "-u tocsin -- /opt/tocsin/bin/tocsin trace 1",
        f"TOCSIN_DATABASE_URL={url}",
        "TOCSIN_DATA_DIR=/var/lib/tocsin" + ("-main" if instance else ""),
        "TOCSIN_ENCRYPTION_KEY=KEY",
        f"TOCSIN_PLUGINS_FILE={tmp_path}/plugins.toml",
        *(["TOCSIN_PORT=9000"] if instance else []),
    ]


def test_the_image_has_an_unprivileged_user_and_a_health_check_without_a_shell():
    text = (DEPLOY / "Containerfile").read_text()
    assert re.findall(r"^USER (.*)$", text, re.MULTILINE) == [f"{OWN_USER}:{OWN_USER}"]
    for instruction in ("RUN", "ENTRYPOINT", "CMD", r"HEALTHCHECK .* CMD"):
        assert re.findall(rf"^{instruction} (.)", text, re.MULTILINE), instruction
        assert set(re.findall(rf"^{instruction} (.)", text, re.MULTILINE)) == {"["}
    assert "'/healthz'" in text


@pytest.mark.parametrize("name", ["compose.yaml", "compose-postgresql.yaml"])
def test_containers_of_compose_files_are_confined(name):
    services = yaml.safe_load((DEPLOY / name).read_text())["services"]
    own = {key: service for key, service in services.items() if key != "postgresql"}
    for service in own.values():
        assert service["read_only"] is True
        assert service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]
        assert set(service["environment"]) <= _SETTINGS
    for service in services.values():
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", []))
    nodes = [service for service in own.values() if "command" not in service]
    assert len(nodes) == (1 if name == "compose.yaml" else 2)


@needs("nginx")
@needs("openssl")
def test_nginx_accepts_its_configuration(tmp_path):
    key, certificate = tmp_path / "key", tmp_path / "certificate"
    subject = ("-subj", "/CN=tocsin.example.org", "-days", 1)
    made = run(
        *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", *subject),
        *("-keyout", key, "-out", certificate),
    )
    assert made.returncode == 0, made.stderr
    text = (DEPLOY / "nginx.conf").read_text()
    for path, ours in (
        ("/etc/ssl/private/tocsin.key", key),
        ("/etc/ssl/tocsin.pem", certificate),
        ("/var/log/nginx", tmp_path),
    ):
        assert path in text
        text = text.replace(path, str(ours))
    main = tmp_path / "nginx.conf"
    main.write_text(f"pid {tmp_path}/pid; events {{}}\nhttp {{\n{text}\n}}\n")
    tested = run("nginx", "-t", "-c", main)
    assert tested.returncode == 0, tested.stderr


@needs("caddy")
def test_caddy_accepts_its_configuration(tmp_path):
    home = {"HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path)}
    validated = run(
        "caddy", "validate", "--adapter", "caddyfile", "--config", DEPLOY / "Caddyfile", env=home
    )
    assert validated.returncode == 0, validated.stderr
