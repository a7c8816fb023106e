import json
import shlex

import pytest
from pydantic import ValidationError

from online_svm.config import PredictorConfig
from workers.cli.options import metavar
from workers.config.environment import PROCESS_ENVIRONMENT
from workers.config.settings import FeedSettings, Limits, WorkerSettings, load, origins
from workers.config.text_values import option
from workers.errors import BadConfiguration

SECRET = "hunter2secret"


@pytest.fixture
def toml(tmp_path):
    def write(text):
        path = tmp_path / "settings.toml"
        path.write_text(text)
        return path

    return write


def test_defaults_are_those_of_the_models():
    settings = load({})
    assert settings.predictor == PredictorConfig()
    assert settings.limits == Limits()
    assert settings.redis is None


def test_flags_win_over_the_environment_over_the_file_over_the_defaults(toml, monkeypatch):
    path = toml("batch = 1\nretain_out = 2\n[predictor]\nC = 3.0\nwindow = 'none'\n")
    monkeypatch.setenv("ONLINE_SVM_BATCH", "10")
    monkeypatch.setenv("ONLINE_SVM_RETAIN_OUT", "20")
    settings = load({"batch": "100"}, path)
    assert (settings.batch, settings.retain_out, settings.C) == (100, 20, 3.0)
    assert settings.lease == WorkerSettings.model_fields["lease"].default
    found = origins({"batch": "100"}, path)
    assert list(found) == list(WorkerSettings.model_fields)
    expected = {"batch": "option", "retain_out": "environment", "C": "file", "window": "file"}
    assert {name: origin for name, origin in found.items() if origin != "default"} == expected


def test_the_file_may_be_named_by_the_environment_and_group_its_keys_in_tables(toml, monkeypatch):
    path = toml(
        "[worker]\nbatch = 7\n[predictor]\nclasses = ['a', 'b']\nwindow = 'none'\n"
        "[limits]\nmax_features = 5\n"
    )
    monkeypatch.setenv("ONLINE_SVM_CONFIG", str(path))
    settings = load({})
    assert (settings.batch, settings.limits.max_features) == (7, 5)
    assert settings.predictor == PredictorConfig(classes=["a", "b"], window=None)


@pytest.mark.parametrize(("name", "text", "value"), [
    ("classes", "b,a", ("b", "a")), ("classes", '["a,b", "c\\"d\' e"]', ("a,b", "c\"d' e")),
    ("classes", '[" a", "b c"]', (" a", "b c")), ("classes", "none", None),
    ("window", "none", None), ("window", "500", 500),
    ("features", "12", 12), ("features", "age,income", ("age", "income")),
    ("features", '["5"]', ("5",)), ("features", '["none"]', ("none",)),
    ("features", '["5", "6"]', ("5", "6")),
    ("maps", "platt", ("platt",)), ("maps", "[]", ()),
    ("gamma", "0.5", 0.5), ("gamma", "1e-7", 1e-7), ("gamma", "scale", "scale"),
    ("class_weight", "balanced", "balanced"), ("class_weight", "a=2", {"a": 2.0}),
    ("class_weight", "a=2,b=0.5", {"a": 2.0, "b": 0.5}),
    ("class_weight", '{"a=1,b": 2}', {"a=1,b": 2.0}),
    ("C", "10", 10.0), ("keep_input", "true", True),
    ("kernel", "linear", "linear"),
])  # fmt: skip
def test_a_setting_has_one_form_as_flag_variable_and_advice(monkeypatch, name, text, value):
    settings = load({name: text})
    assert getattr(settings, name) == value
    if not isinstance(value, bool):
        flag, advised = shlex.split(option(name, settings.model_dump(mode="json")[name]))
        assert flag == "--" + name.replace("_", "-")
        assert getattr(load({name: advised}), name) == value
    monkeypatch.setenv(f"ONLINE_SVM_{name.upper()}", text)
    assert getattr(load({}), name) == value


COSTS = {"a": {"a": 0, "b": 5, "review": 0.4}, "b": {"a": 1, "b": 0, "review": 0.4}}


@pytest.mark.parametrize("text", [
    "a:b=5,b:a=1,review=.4", " a:b = 5, b:a=1, review=0.4 ", "a:b=5,a:review=.4,b:a=1,b:review=.4",
    json.dumps(COSTS), "a:a=0,a:b=5,b:a=1,b:b=0,review=.4",
])  # fmt: skip
def test_costs_are_written_short_or_as_json_and_so_advised(monkeypatch, text):
    settings = load({"classes": "a,b", "costs": text})
    assert settings.costs == COSTS
    _, advised = shlex.split(option("costs", settings.model_dump(mode="json")["costs"]))
    assert load({"classes": "a,b", "costs": advised}).costs == COSTS
    monkeypatch.setenv("ONLINE_SVM_COSTS", text)
    assert load({"classes": "a,b"}).costs == COSTS


@pytest.mark.parametrize(("name", "form"), [
    ("costs", "A:B=1,B:A=2"), ("class_weight", "A=1,B=2"), ("classes", "A,B"), ("slices", "A,B"),
])  # fmt: skip
def test_the_form_that_help_shows_is_taken(name, form):
    assert form in metavar(WorkerSettings.model_fields[name])
    assert getattr(load({"classes": "A,B"} | {name: form}), name)


@pytest.mark.parametrize("text", ["a=1,b=2", "review=.4"])
def test_costs_without_rows_are_refused_with_their_form(text):
    with pytest.raises(
        BadConfiguration, match=r"write LABEL:ACTION=COST,.*, as a:b=5,b:a=1, or JSON"
    ):
        load({"classes": "a,b", "costs": text})


@pytest.mark.parametrize(("text", "told"), [
    ("refit_evry = 3", "unknown setting 'refit_evry': did you mean refit_every?"),
    ("[predictors]\nC = 3", "unknown setting 'predictors'"),
    ("batch = 7\n[worker]\nbatch = 8", "setting batch: the file gives it twice"),
    ("batch = 7\n[worker]\nbatch = 7", "setting batch: the file gives it twice"),
    ("[worker]\nbatch = 7\n[predictor]\nbatch = 8", "setting batch: the file gives it twice"),
    ("batch = ", "FILE: not TOML"),
    (None, "FILE: no such file"),
])  # fmt: skip
def test_a_file_that_cannot_be_taken_is_refused(tmp_path, text, told):
    path = tmp_path / "settings.toml"
    if text is not None:
        path.write_text(text)
    with pytest.raises(BadConfiguration) as refused:
        load({}, path)
    assert str(refused.value).startswith(told.replace("FILE", str(path)))


def test_an_unknown_variable_is_refused_with_the_nearest_one(monkeypatch):
    monkeypatch.setenv("ONLINE_SVM_BATCHES", "3")
    with pytest.raises(
        BadConfiguration, match=r"ONLINE_SVM_BATCHES.*did you mean ONLINE_SVM_BATCH"
    ):
        load({})


def test_variables_that_are_no_settings_are_let_be(monkeypatch):
    for name in PROCESS_ENVIRONMENT:
        if name.startswith("ONLINE_SVM_") and name != "ONLINE_SVM_CONFIG":
            monkeypatch.setenv(name, "x")
    assert load({}).batch == 256


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("batch", "0", "must be greater than or equal to 1"),
        ("classes", "[1", "not JSON: unexpected end of data"),
        ("features", "0", "must be greater than or equal to 1"),
        ("features", "200000", "must be less than or equal to 100000"),
        ("features", '["a", ""]', "a text must have at least 1 character"),
        ("gamma", "wide", "must be a number or 'scale'"),
        ("window", "x", "must be an integer"),
        ("class_weight", "heavy", "must be label=weight,label=weight or 'balanced'"),
        ("class_weight", "a=0", "must be greater than or equal to 0.000001"),
        ("class_weight", "a=x", "must be a number"),
        (
            "committee",
            "nonsense",
            "must be 'single' or 'default' or "
            "'rbf', 'rbf-wide', 'rbf-narrow', 'trees' or 'logistic'",
        ),
        ("features", 1.5, "must be an integer, got a number with a fractional part"),
    ],
)
def test_a_value_that_cannot_work_is_refused_in_one_sentence(name, text, told):
    with pytest.raises(BadConfiguration) as refused:
        load({name: text})
    assert str(refused.value) == f"setting {name}: {told}"


def test_settings_that_contradict_each_other_are_refused():
    with pytest.raises(BadConfiguration, match="label_budget: an answer says whether"):
        load({"label_budget": "0.1"})


def test_the_password_never_shows(monkeypatch, toml):
    url = f"rediss://me:{SECRET}@redis.example:6379/0"
    monkeypatch.setenv("ONLINE_SVM_REDIS", url)
    settings = load({})
    assert settings.redis.get_secret_value() == url
    for text in (repr(settings), str(settings), str(settings.shown()), repr(settings.redis),
                 settings.model_dump_json(), str(settings.model_dump())):  # fmt: skip
        assert SECRET not in text
    assert settings.shown()["redis"] == "rediss://redis.example:6379/0"


def test_an_error_beside_a_password_does_not_show_it():
    url = f"redis://me:{SECRET}@h/0"
    with pytest.raises(BadConfiguration) as refused:
        load({"redis": url, "batch": "x", "label_budget": "0.1"})
    assert SECRET not in str(refused.value)
    with pytest.raises(ValidationError) as invalid:
        WorkerSettings(redis=url, batch="x")
    assert SECRET not in str(invalid.value)


@pytest.mark.parametrize("text", ["error=.03,miss=.1", '{"miss": 0.1, "error": 0.03}'])
def test_a_promise_is_written_short_or_as_json(text):
    settings = load({"classes": "a,b", "promise": text})
    assert settings.promise == {"error": 0.03, "miss": 0.1, "confidence": 0.95}
    _, advised = shlex.split(option("promise", settings.model_dump(mode="json")["promise"]))
    assert load({"classes": "a,b", "promise": advised}).promise == settings.promise
    with pytest.raises(BadConfiguration, match="setting promise: "):
        load({"classes": "a,b", "promise": "error=2"})


def test_the_configuration_of_the_predictor_has_no_setting_of_the_service():
    assert load({"batch": 3}).predictor.model_dump().keys() == PredictorConfig.model_fields.keys()


def test_no_setting_is_declared_by_two_models():
    own = set(WorkerSettings.__annotations__)
    assert not own & (set(PredictorConfig.model_fields) | set(Limits.model_fields))
    assert not set(PredictorConfig.model_fields) & set(Limits.model_fields)


def test_no_check_of_a_parent_is_switched_off():
    ours = WorkerSettings.__pydantic_decorators__.model_validators
    for parent in WorkerSettings.__mro__[1:]:
        theirs = getattr(parent, "__pydantic_decorators__", None)
        for name, check in theirs.model_validators.items() if theirs else ():
            assert ours[name].func is check.func, f"{parent.__name__}.{name}"


FILE = """
lease = 3.0
[predictor]
window = 100
[feed."sensors-*"]
window = 200
batch = 5
[feed.sensors-1]
batch = 7
[feed."*-1"]
C = 2.5
batch = 6
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "settings.toml"
    path.write_text(FILE)
    return path


def figures(settings):
    return settings.window, settings.batch, settings.C, settings.lease


def test_a_section_by_name_goes_over_patterns_and_the_file(file):
    known = FeedSettings({}, file)
    assert figures(known.general) == (100, 256, 1.0, 3.0)
    assert figures(known.of("sensors-2")) == (200, 5, 1.0, 3.0)
    assert figures(known.of("sensors-1")) == (200, 7, 2.5, 3.0)
    assert figures(known.of("returns-1")) == (100, 6, 2.5, 3.0)
    assert figures(known.of("returns")) == (100, 256, 1.0, 3.0)
    assert known.of("sensors-2").model_fields_set >= {"window", "batch", "lease"}


def test_flags_and_environment_go_over_the_sections(file, monkeypatch):
    monkeypatch.setenv("ONLINE_SVM_WINDOW", "300")
    known = FeedSettings({"batch": "9"}, file)
    assert figures(known.of("sensors-1")) == (300, 9, 2.5, 3.0)


def test_a_worker_of_one_feed_takes_the_sections_of_its_feed(file):
    assert figures(load({}, file, feed="sensors-1")) == (200, 7, 2.5, 3.0)
    assert figures(load({}, file)) == (100, 256, 1.0, 3.0)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[feed."a-*"]\nlease = 2', "lease"),
        ("[feed.a]\nwindwo = 2", "did you mean window"),
        ("[feed.a]\nwindow = -2", "window"),
        ("feed = 3", "sections"),
        ("[feed]\nwindow = 3", "is no section"),
    ],
)
def test_a_wrong_section_is_refused_before_any_feed_is_begun(tmp_path, text, said):
    path = tmp_path / "settings.toml"
    path.write_text(text)
    with pytest.raises(BadConfiguration, match=said):
        FeedSettings({}, path)


def test_feeds_of_the_same_sections_share_their_settings(file):
    known = FeedSettings({}, file)
    assert known.of("sensors-2") is known.of("sensors-3")
