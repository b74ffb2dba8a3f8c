"""Renderer of the Helm chart, in a process of its own, because the library is a Go runtime.

`python tests/helm_chart.py CHART` reads a list of values as JSON, and writes one result for each:
the objects, or the error as a text. All objects of Kubernetes itself are compared with its schemas.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[1]
CHART = ROOT / "deploy/helm/tocsin"
HELM = Path(os.environ.get("TOCSIN_HELM", ROOT / ".components/helm"))
KUBERNETES = ("1.27", "1.37")
"""The oldest and the newest version that the objects are compared with."""
needs_helm = pytest.mark.skipif(
    not HELM.exists(), reason="there is no Helm here: run .ci/components, or set TOCSIN_HELM"
)
_OTHERS = ("monitoring.coreos.com/v1",)


def render(*values: dict[str, Any], chart: Path = CHART) -> list[Any]:
    """Return the objects for each of the values, or the error."""
    done = subprocess.run(
        [sys.executable, __file__, chart],
        env={**os.environ, "PYTHONPATH": str(HELM)},
        input=json.dumps(values),
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def _render(chart: Any, values: dict[str, Any]) -> list[dict[str, Any]] | str:
    import helm_python
    import kubernetes_validate

    try:
        chart.validate_schema(chart.merge_values(values))
        files = chart.render(values, name="tocsin", namespace="soc")
    except helm_python.HelmError as error:
        return str(error)
    texts = [text for name, text in files.items() if name.endswith(".yaml")]
    objects = [found for text in texts for found in yaml.safe_load_all(text) if found]
    for found in objects:
        if found["apiVersion"] not in _OTHERS:
            for version in KUBERNETES:
                kubernetes_validate.validate(found, version, strict=True)
    return objects


def main() -> None:
    """Render the chart with each of the values."""
    import helm_python

    errors = helm_python.lint(sys.argv[1])["errors"]
    assert not errors, errors
    with helm_python.Chart.load(sys.argv[1]) as chart:
        results = [_render(chart, values) for values in json.load(sys.stdin)]
    json.dump(results, sys.stdout)


if __name__ == "__main__":
    main()
