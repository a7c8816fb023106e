"""Write the alerts of deploy/prometheus/rules.yml as a PrometheusRule for Kubernetes."""

import sys
from functools import partial
from pathlib import Path

import yaml  # type: ignore[import-untyped]  # ships no type information

from scripts.generated_page import write_or_check

DEPLOY = Path(__file__).parents[1] / "deploy"
SOURCE, TARGET = DEPLOY / "prometheus/rules.yml", DEPLOY / "kubernetes/monitoring/rules.yaml"

_HEAD = "# Made by scripts/make_prometheus_rule.py from deploy/prometheus/rules.yml: edit that.\n"


def render() -> str:
    """Return the resource as YAML, a rule a line."""
    groups = yaml.safe_load(SOURCE.read_text("utf-8"))["groups"]
    resource = {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PrometheusRule",
        "metadata": {"name": "online-svm"},
    }
    lines = [_HEAD, yaml.safe_dump(resource, sort_keys=False), "spec:\n  groups:\n"]
    for group in groups:
        lines.append(f"    - name: {group['name']}\n      rules:\n")
        for rule in group["rules"]:
            text = yaml.safe_dump(
                rule, sort_keys=False, width=10**6, default_flow_style=True, allow_unicode=True
            )
            lines.append(f"        - {text}")
    return "".join(lines)


main = partial(write_or_check, TARGET, render, __doc__)

if __name__ == "__main__":
    sys.exit(main())
