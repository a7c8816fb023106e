import importlib.util
import json
import re
from pathlib import Path

import pytest
from pydantic import ValidationError

from online_svm.config import PredictorConfig
from online_svm.errors import REJECTION_CODES
from workers.feed.codes import CODES
from workers.feed.state import RejectedEntry
from workers.message.schema import STREAMS, DeadLetter, InputEntry, PredictionMessage

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "messages.md").read_text()
EXAMPLE = next(line for line in PAGE.splitlines() if line.startswith('{"v":2,"status":"ok"'))


def script():
    """Load the generator, which is not part of a package."""
    spec = importlib.util.spec_from_file_location(
        "make_message_docs", ROOT / "scripts" / "make_message_docs.py"
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_field_of_every_message_is_described():
    for models in STREAMS.values():
        for model in models:
            assert model.__doc__
            assert all(field.description for field in script().fields_of(model).values())


def test_every_reason_code_is_explained_and_no_other():
    assert tuple(CODES) == REJECTION_CODES


def test_the_page_of_messages_is_up_to_date():
    assert script().main(["--check"]) == 0


def test_the_page_names_every_field_and_code():
    models = [model for models in STREAMS.values() for model in models]
    fields = [item for model in models for item in script().fields_of(model).items()]
    names = [field.alias or name for name, field in fields] + list(CODES)
    heads = [line.partition(":")[0] for line in PAGE.splitlines() if line.startswith("- `")]
    described = {name for head in heads for name in re.findall(r"`(\w+)`", head)}
    assert set(names) - described == set()


def test_the_answer_on_the_page_can_be_parsed():
    assert PredictionMessage.model_validate_json(EXAMPLE).payload().decode() == EXAMPLE


def test_an_unknown_field_is_not_part_of_the_schema():
    with pytest.raises(ValidationError, match="colour"):
        PredictionMessage.model_validate(json.loads(EXAMPLE) | {"colour": "red"})


def test_a_dead_letter_is_stored_with_the_fields_of_the_schema():
    letter = RejectedEntry(b"1-0", "time", "{}", 1, b"x")
    assert [name.decode() for name in letter.fields[::2]] == list(DeadLetter.model_fields)


def test_the_input_schema_has_the_fields_that_are_decoded():
    names = {field.alias or name for name, field in InputEntry.model_fields.items()}
    assert names == {
        "x", "xb", "y", "p", "id", "s", "for", "time", "score", "score_version", "traceparent"
    }  # fmt: skip


def test_the_published_maps_are_named_as_in_the_configuration():
    for name in PredictorConfig().maps:
        assert f'"{name}":[' in PAGE
