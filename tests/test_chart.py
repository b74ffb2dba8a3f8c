"""The Helm chart: rendered by Helm, compared with the schemas of Kubernetes, and its pods run."""

from __future__ import annotations

import base64
import json
import os
import re
import subprocess
import sys
import time
import tomllib
import urllib.request
from contextlib import contextmanager

import pytest
import yaml
from jsonschema import Draft7Validator

from helm_chart import CHART, ROOT, needs_helm, render
from ports import free_port
from tocsin.settings import FILE_SUFFIX, PREFIX, SECRETS, Settings

BASE = {
    "baseUrl": "https://tocsin.example.org",
    "databaseUrl": {"existingSecret": "tocsin"},
    "encryptionKey": {"existingSecret": "tocsin", "key": "key"},
}
EVERYTHING = BASE | {
    "image": {"digest": "sha256:" + "0" * 64, "pullSecrets": ["registry"]},
    "trustedProxies": ["10.0.0.0/8", "fd00::/8"],
    "configuration": 'enabled = ["webhook"]\n# {{ not a template }}\n',
    "metricsToken": {"existingSecret": "metrics"},
    "oidcClientSecret": {"existingSecret": "oidc"},
    "pluginSecrets": ["siem", "soar"],
    "settings": {
        "TOCSIN_RATE_LIMIT": "1000000",
        "TOCSIN_OIDC_ISSUER": "https://idp.example.org",
        "TOCSIN_OIDC_CLIENT_ID": "tocsin",
        "OTEL_SERVICE_NAME": "soc",
    },
    "networkPolicy": {
        "from": [{"namespaceSelector": {"matchLabels": {"name": "ingress"}}}],
        "egress": [{"to": [{"ipBlock": {"cidr": "0.0.0.0/0"}}], "ports": [{"port": 443}]}],
    },
    "serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}},
    "prometheusRule": {"enabled": True},
    "nodeSelector": {"kubernetes.io/arch": "amd64"},
    "tolerations": [{"key": "security", "operator": "Exists"}],
    "affinity": {"nodeAffinity": {}},
    "topologySpreadConstraints": [
        {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
    ],
    "podAnnotations": {"example.org/team": "soc"},
    "service": {"annotations": {"example.org/team": "soc"}},
}
MINIMUM = BASE | {
    "replicas": 1,
    "networkPolicy": {"enabled": False},
    "podDisruptionBudget": {"enabled": False},
}
WRONG = (
    ({}, "baseUrl"),
    (BASE | {"baseUrl": "http://tocsin.example.org"}, "baseUrl"),
    (BASE | {"databaseUrl": {}}, "databaseUrl.existingSecret"),
    (BASE | {"encryptionKey": {}}, "encryptionKey.existingSecret"),
    (BASE | {"replicaCount": 2}, "replicaCount"),
    (BASE | {"settings": {"TOCSIN_PORT": "80"}}, "TOCSIN_PORT"),
    (BASE | {"settings": {"TOCSIN_RATE_LIMIT": 1_000_000}}, "RATE_LIMIT"),
    (BASE | {"serviceMonitor": {"enabled": True}}, "metricsToken.existingSecret"),
)
SETTINGS = {f"{PREFIX}{name.upper()}" for name in Settings.model_fields} | {
    f"{PREFIX}{name.upper()}{FILE_SUFFIX}" for name in SECRETS
}


def test_the_version_of_the_chart_is_the_one_of_the_package():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert chart["version"] == chart["appVersion"] == project["version"]


def test_the_default_values_fit_their_schema():
    schema = json.loads((CHART / "values.schema.json").read_text())
    Draft7Validator.check_schema(schema)
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    assert not list(Draft7Validator(schema).iter_errors(values))
    assert set(schema["properties"]) - {"global"} == set(values)


def test_variables_of_the_chart_are_settings():
    text = "".join(path.read_text() for path in (CHART / "templates").iterdir())
    given = set(re.findall(r"\b(TOCSIN_[A-Z_]+), value", text))
    assert len(given) > 5
    assert given <= SETTINGS


@pytest.fixture(scope="module")
def rendered() -> list:
    return render(EVERYTHING, MINIMUM, *(values for values, _ in WRONG))


def pick(objects: list[dict], kind: str, name: str = "tocsin") -> dict:
    [found] = [one for one in objects if (one["kind"], one["metadata"]["name"]) == (kind, name)]
    return found


@pytest.mark.full
@needs_helm
def test_wrong_values_are_refused_with_what_is_wrong(rendered):
    for (values, words), result in zip(WRONG, rendered[2:], strict=True):
        assert isinstance(result, str), values
        assert words in result


@pytest.mark.full
@needs_helm
def test_all_pods_are_confined(rendered):
    for objects in rendered[:2]:
        job, deployment = pick(objects, "Job", "tocsin-setup"), pick(objects, "Deployment")
        assert len(job["spec"]["template"]["spec"]["initContainers"]) == 1
        for workload in (job, deployment):
            pod = workload["spec"]["template"]["spec"]
            assert pod["automountServiceAccountToken"] is False
            assert pod["enableServiceLinks"] is False
            assert pod["securityContext"]["runAsNonRoot"] is True
            assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
            for container in (*pod.get("initContainers", ()), *pod["containers"]):
                assert container["securityContext"] == {
                    "allowPrivilegeEscalation": False,
                    "readOnlyRootFilesystem": True,
                    "capabilities": {"drop": ["ALL"]},
                }
                given = {one["name"] for one in container["env"]}
                assert given <= SETTINGS | {"OTEL_SERVICE_NAME"}
                mounted = {mount["name"] for mount in container["volumeMounts"]}
                assert mounted == {volume["name"] for volume in pod["volumes"]}


@pytest.mark.full
@needs_helm
def test_the_job_needs_nothing_that_exists_only_after_it(rendered):
    objects = rendered[0]
    job = pick(objects, "Job", "tocsin-setup")
    pod = job["spec"]["template"]["spec"]
    assert "serviceAccountName" not in pod
    [name] = [one["configMap"]["name"] for one in pod["volumes"] if "configMap" in one]
    configuration = pick(objects, "ConfigMap", name)
    hooks = [one["metadata"]["annotations"] for one in (configuration, job)]
    assert {one["helm.sh/hook"] for one in hooks} == {"pre-install,pre-upgrade"}
    first, second = (int(one["helm.sh/hook-weight"]) for one in hooks)
    assert first < second
    assert configuration["data"] == pick(objects, "ConfigMap")["data"]


@pytest.mark.full
@needs_helm
def test_the_optional_objects_are_there_when_they_are_asked_for(rendered):
    everything, minimum = rendered[:2]
    optional = {"NetworkPolicy", "PodDisruptionBudget", "PrometheusRule", "ServiceMonitor"}
    assert {one["kind"] for one in everything} - {one["kind"] for one in minimum} == optional
    assert pick(everything, "NetworkPolicy")["spec"]["policyTypes"] == ["Ingress", "Egress"]
    rules = yaml.safe_load((ROOT / "deploy/prometheus/tocsin.rules.yml").read_text())
    assert pick(everything, "PrometheusRule")["spec"] == rules
    monitor = pick(everything, "ServiceMonitor")
    service = pick(everything, "Service")["metadata"]["labels"]
    assert monitor["spec"]["selector"]["matchLabels"].items() <= service.items()
    assert service[monitor["spec"]["jobLabel"]] == "tocsin"  # what the rules expect
    template = pick(everything, "Deployment")["spec"]["template"]
    for kind in ("Service", "NetworkPolicy", "PodDisruptionBudget"):
        spec = pick(everything, kind)["spec"]
        selector = spec["podSelector"] if kind == "NetworkPolicy" else spec["selector"]
        selected = selector.get("matchLabels", selector)
        assert selected.items() <= template["metadata"]["labels"].items()
        job = pick(everything, "Job", "tocsin-setup")["spec"]["template"]["metadata"]["labels"]
        assert not selected.items() <= job.items()


@contextmanager
def serve(environment: dict[str, str]):
    with subprocess.Popen([sys.executable, "-m", "tocsin", "serve"], env=environment) as service:
        yield service
        service.terminate()
        assert service.wait() == 0


@pytest.mark.full
@pytest.mark.timeout(600)
@needs_helm
def test_the_job_and_a_node_work_with_what_is_mounted(rendered, postgres, tmp_path):
    objects, port = rendered[0], str(free_port())
    files = {
        "configuration/plugins.toml": pick(objects, "ConfigMap")["data"]["plugins.toml"],
        "service/database-url": postgres.create("chart"),
        "service/encryption-key": base64.urlsafe_b64encode(os.urandom(32)).decode(),
        "service/metrics-token": "a-token",
        "service/oidc-client-secret": "a-secret",
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    others = {name: value for name, value in os.environ.items() if not name.startswith(PREFIX)}

    def prepare(container: dict) -> dict[str, str]:
        given = {one["name"]: one["value"] for one in container["env"]}
        changed = {
            name: value.replace("/etc/tocsin", str(tmp_path)) for name, value in given.items()
        }
        own = {"TOCSIN_DATA_DIR": str(tmp_path / "data"), "TOCSIN_PORT": port}
        return others | changed | own

    job = pick(objects, "Job", "tocsin-setup")["spec"]["template"]["spec"]
    for container in (*job["initContainers"], *job["containers"]):
        command = [sys.executable, "-m", "tocsin", *container["args"]]
        subprocess.run(command, env=prepare(container), check=True)

    [node] = pick(objects, "Deployment")["spec"]["template"]["spec"]["containers"]
    with serve(prepare(node)) as service:
        for probe, headers in (
            *((node[name]["httpGet"]["path"], {}) for name in ("readinessProbe", "livenessProbe")),
            ("/metrics", {"Authorization": "Bearer a-token"}),
        ):
            # by the address of the pod, as the kubelet and Prometheus ask
            asked = urllib.request.Request(
                f"http://127.0.0.1:{port}{probe}", headers=headers | {"Host": "10.1.2.3:8080"}
            )
            while True:
                assert service.poll() is None
                try:
                    urllib.request.urlopen(asked, timeout=10).close()
                except OSError:
                    time.sleep(0.1)
                    continue
                break
