"""ServiceMonitor and PrometheusRule, against the part of their schemas that they use.

The schemas here are this project's own extracts of monitoring.coreos.com/v1 (0.84): the members
that the files use, and no others, so that a misspelt member is an error. They need no network.
"""

import re
from pathlib import Path

import pytest
import yaml
from kustomized import build

from scripts.make_prometheus_rule import SOURCE, TARGET, render

KUBERNETES = Path(__file__).parents[2] / "deploy/kubernetes"
RESOURCES = build(KUBERNETES / "monitoring")
DURATION = {
    "type": "string",
    "pattern": "^(0|(([0-9]+)y)?(([0-9]+)w)?(([0-9]+)d)?(([0-9]+)h)?(([0-9]+)m)?(([0-9]+)s)?"
    "(([0-9]+)ms)?)$",
}
TEXT = {"type": "string", "minLength": 1}
TEXTS = {"type": "object", "additionalProperties": TEXT}


def closed(required=(), **properties):
    return {
        "type": "object", "properties": properties, "required": list(required),
        "additionalProperties": False,
    }  # fmt: skip


def of_list(items):
    return {"type": "array", "minItems": 1, "items": items}


RULE = closed(
    ["expr"], alert=TEXT, record=TEXT, expr=TEXT, labels=TEXTS, annotations=TEXTS,
    **{"for": DURATION},
) | {"oneOf": [{"required": ["alert"]}, {"required": ["record"]}]}  # fmt: skip
SPECS = {
    "PrometheusRule": closed(
        ["groups"], groups=of_list(closed(["name"], name=TEXT, rules=of_list(RULE)))
    ),
    "ServiceMonitor": closed(
        ["endpoints", "selector"],
        selector=closed(matchLabels=TEXTS),
        endpoints=of_list(
            closed(
                port=TEXT, interval=DURATION, scrapeTimeout=DURATION,
                relabelings=of_list(closed(targetLabel=TEXT, replacement=TEXT)),
            )
        ),
    ),
}  # fmt: skip


@pytest.mark.parametrize("resource", RESOURCES, ids=lambda one: one["kind"])
def test_a_resource_is_one_by_its_schema(resource):
    from jsonschema import validate  # see test_files.py

    api = {"const": "monitoring.coreos.com/v1"}
    spec = SPECS[resource["kind"]]
    schema = closed(
        ["apiVersion", "kind", "metadata", "spec"], apiVersion=api, kind=TEXT, spec=spec,
        metadata=closed(["name"], name=TEXT, labels=TEXTS),
    )  # fmt: skip
    validate(resource, schema)


def test_the_rules_are_those_of_prometheus_without_kubernetes():
    assert TARGET.read_text("utf-8") == render()
    (found,) = [each["spec"] for each in RESOURCES if each["kind"] == "PrometheusRule"]
    assert found == yaml.safe_load(SOURCE.read_text("utf-8"))


def test_each_monitor_finds_the_port_of_one_service_and_the_alerts_know_its_job():
    services = [
        each for each in build(KUBERNETES / "overlays/recorded") if each["kind"] == "Service"
    ]
    jobs = set()
    for monitor in (each["spec"] for each in RESOURCES if each["kind"] == "ServiceMonitor"):
        wanted, (endpoint,) = monitor["selector"]["matchLabels"].items(), monitor["endpoints"]
        (service,) = [each for each in services if wanted <= each["metadata"]["labels"].items()]
        assert endpoint["port"] in [port["name"] for port in service["spec"]["ports"]]
        jobs |= {each["replacement"] for each in endpoint["relabelings"]}
    assert jobs == set(re.findall(r'job="([\w-]+)"', SOURCE.read_text("utf-8")))
