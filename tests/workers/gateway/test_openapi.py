"""The OpenAPI document: it describes every route, status and error, and the server keeps to it."""

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest
from described import DOCUMENT
from served_gateway import serving
from system_tools import package

from workers.gateway.app import application
from workers.gateway.bodies import LabelOfExample, NewExample
from workers.gateway.gateway import Gateway
from workers.gateway.inference_protocol import InferenceProtocol
from workers.gateway.limits import GatewayLimits
from workers.gateway.openapi import MAX_TIMEOUT, OPERATIONS, document, fields_of
from workers.gateway.refused import PROBLEMS, WORDS
from workers.gateway.tokens import Tokens

GATEWAY = Path(__file__).parents[3] / "workers" / "gateway"
ANYWHERE = {"address_unknown", "method_unknown"}


def test_the_gateway_serves_the_document(gateway):
    reply = gateway.get("/openapi.json")
    assert (reply.status, reply.json) == (200, DOCUMENT)
    assert reply.json["openapi"] == "3.1.0"


def test_every_route_is_described_and_every_described_route_is_there():
    gateway = Gateway("redis://127.0.0.1:1/0", ["a"], Tokens(None), GatewayLimits())
    app = application(gateway, InferenceProtocol(gateway).routes)
    served = {(method, r.path) for r in app.routes for method in r.methods - {"HEAD"}}
    described = {
        (method.upper(), path) for path, item in DOCUMENT["paths"].items() for method in item
    }
    assert served == described
    assert len(app.routes) == len(OPERATIONS)


def test_every_schema_is_valid_and_every_reference_resolves():
    from jsonschema import Draft202012Validator  # takes seconds to load with every extra

    for schema in DOCUMENT["components"]["schemas"].values():
        Draft202012Validator.check_schema(schema)
    text = json.dumps(DOCUMENT)
    for part in text.split('"$ref": "#/')[1:]:
        found = DOCUMENT
        for name in part.partition('"')[0].split("/"):
            found = found[name]
    assert "Examples\\n" not in text, "no doctest in a description"


def refusals():
    """Yield the code and the names of the parameters of each refusal in the program."""
    for path in sorted(GATEWAY.glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            name = getattr(getattr(node, "func", None), "id", None)
            if name in ("Refused", "later") and not isinstance(node.args[0], ast.Name):
                parts = ast.walk(node.args[0])
                codes = [p.value for p in parts if isinstance(getattr(p, "value", None), str)]
                given = {word.arg for word in node.keywords} - {"ids", "headers"}
                yield from ((code, given) for code in codes)


def test_every_problem_is_raised_with_its_parameters_and_no_other():
    found = [*refusals()]
    assert {code for code, _ in found} == PROBLEMS.keys()
    for code, given in found:
        assert given - {WORDS} == set(fields_of(code)), code
        assert (WORDS in given) == ("{words}" in PROBLEMS[code].sentence), code


def test_every_problem_is_of_an_operation_or_of_none_that_exists():
    described = {code for one in OPERATIONS for code in one.problems}
    assert described == PROBLEMS.keys() - ANYWHERE


def test_the_names_of_a_body_are_those_that_are_described():
    schemas = DOCUMENT["components"]["schemas"]
    for model in (NewExample, LabelOfExample):
        schema = schemas[model.__name__]
        assert [*schema["properties"]] == [*model.model_fields]
        assert schema["additionalProperties"] is False
        needed = [name for name, field in model.model_fields.items() if field.is_required()]
        assert schema.get("required", []) == needed
    assert '"default": null' not in json.dumps(DOCUMENT), "a client would have to send null"


def test_the_limit_of_a_gateway_is_in_its_document():
    assert GatewayLimits().max_timeout == MAX_TIMEOUT
    described = document(7.0)["components"]["parameters"]["timeout"]
    assert described["schema"]["maximum"] == 7.0
    assert document() == DOCUMENT, "the document of another limit is another object"


@pytest.mark.slow
def test_what_schemathesis_sends_is_answered_as_described(answered, tmp_path):
    package("schemathesis", "pip install schemathesis")
    with serving(answered, "plain", "kept", "named", max_timeout=2.0) as client:
        address = f"http://127.0.0.1:{client.port}"
        (tmp_path / "schemathesis.toml").write_text(
            '[parameters]\n"path.feed" = "named"\n"query.timeout" = 0\n'
            "[checks.not_a_server_error]\nexpected-statuses = ['2xx', '4xx', '503']\n"
            "[checks.negative_data_rejection]\nexpected-statuses = ['4xx', '503']\n"
        )
        done = subprocess.run(
            [sys.executable, "-m", "schemathesis.cli", "run", f"{address}/openapi.json",
             "--checks", "all", "--exclude-checks", "positive_data_acceptance",
             "--seed", "1", "--max-examples", "25", "--phases", "coverage,fuzzing",
             "--no-color"],
            cwd=tmp_path, capture_output=True, text=True, timeout=170,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout[-6000:] + done.stderr
