"""What was stored keeps its meaning: the table of semantics, and who reads by it."""

import json

import numpy as np
import pytest
import stored_feeds

from online_svm import semantics
from online_svm.config import PredictorConfig
from online_svm.errors import InvalidConfig, InvalidSnapshot
from online_svm.predictor.combiner import Combiner, CombinerConfig
from online_svm.predictor.online_predictor import OnlinePredictor
from online_svm.storage.snapshot import pack, unpack
from workers.combine.service import JoinSettings
from workers.config.settings import Limits

MODELS = {
    "predictor": PredictorConfig,
    "limits": Limits,
    "combination": CombinerConfig,
    "join": JoinSettings,
}


@pytest.mark.parametrize("number", semantics.DEFAULTS)
@pytest.mark.parametrize("group", MODELS)
def test_every_setting_says_what_its_absence_means(number, group):
    has_line = set(semantics.DEFAULTS[number][group]) | set(semantics.REQUIRED.get(group, ()))
    assert has_line == set(MODELS[group].model_fields), (
        "a setting was added or removed: see the head of online_svm/semantics.py"
    )


@pytest.mark.parametrize("number", semantics.DEFAULTS)
def test_the_defaults_of_each_semantics_are_settings_that_can_work(number):
    for group, model in MODELS.items():
        table = dict(semantics.DEFAULTS[number][group])
        assert table.get("semantics", number) == number
        if "semantics" in table:  # those of a number that was given up are forked to the newest
            table["semantics"] = semantics.SEMANTICS
        needed = {"classes": ("a", "b")} if group == "combination" else {}
        needed |= {"feeds": ("a", "b")} if group == "join" else {}
        dumped = model.model_validate(table | needed).model_dump(mode="json")
        assert {name: dumped[name] for name in table} == table


def test_the_defaults_of_semantics_1_are_those_of_the_software_that_stored_its_feeds():
    stored = {}
    for name in ("default", "combination"):
        content = stored_feeds.read("semantics-1", name)
        stored |= json.loads(content["stored"]["st"]["config"])
    stored["join"].pop("feeds")
    stored["combination"].pop("classes")
    # The combination was made with a join window of its own.
    assert stored["join"].pop("join_window") == 20
    for group, settings in stored.items():
        table = semantics.DEFAULTS[1][group]
        assert settings == {name: table[name] for name in settings}


def test_what_is_begun_now_has_the_newest_semantics():
    assert max(semantics.DEFAULTS) == semantics.SEMANTICS
    assert PredictorConfig().semantics == semantics.SEMANTICS
    assert semantics.SEMANTICS not in semantics.GIVEN_UP
    assert set(semantics.GIVEN_UP) < set(semantics.DEFAULTS)


@pytest.mark.parametrize("number", [0, 3, 10**30, -1, True, 2.0, "2", None, [2]])
def test_semantics_that_are_not_known_are_refused_with_what_to_do(number):
    with pytest.raises(InvalidConfig, match=r"is not known here \(known: 2\): upgrade online-svm"):
        semantics.completed({"predictor": {"semantics": number}})


@pytest.mark.parametrize("settings", [{"semantics": 1}, {}])
def test_semantics_that_were_given_up_are_refused_but_their_settings_can_be_read(settings):
    said = "semantics 1 is no longer computed: go on with the software before the first release"
    with pytest.raises(InvalidConfig, match=said):
        semantics.completed({"predictor": settings})
    with pytest.raises(ValueError, match=said):
        PredictorConfig(semantics=1)
    assert semantics.meaning({"predictor": settings}) == {
        "predictor": semantics.DEFAULTS[1]["predictor"]
    }


def test_a_setting_of_a_newer_version_is_named():
    with pytest.raises(InvalidConfig, match="setting max_classes is not known here: upgrade"):
        semantics.completed({"predictor": {"semantics": 2, "max_classes": 5}})


def test_a_number_without_semantics_is_no_setting():
    with pytest.raises(ValueError, match="semantics 7 is not known here"):
        PredictorConfig(semantics=7)
    with pytest.raises(ValueError, match="semantics 7 is not known here"):
        CombinerConfig(classes=("a", "b"), semantics=7)


def learned():
    """Return a predictor that has a model."""
    predictor = OnlinePredictor(PredictorConfig(window=40, refit_every=20, refit_lag=0))
    X = np.random.default_rng(0).normal(size=(50, 2))
    predictor.step_many(X, ["b" if x > 0 else "a" for x in X[:, 0]])
    return predictor


def with_config(data, change):
    """Return a snapshot whose configuration was changed in place."""
    header, arrays = unpack(data)
    change(header["config"])
    header.pop("format", None)
    return pack(header, arrays)


def without_later_settings(config):
    del config["mixed_share"]


def test_a_snapshot_from_before_a_setting_is_continued():
    before = learned()
    after = OnlinePredictor(before.config)
    after.restore(with_config(before.snapshot(), without_later_settings))
    assert after.snapshot() == before.snapshot()


def test_a_snapshot_from_before_a_setting_is_refused_where_that_is_not_as_before():
    after = OnlinePredictor(
        PredictorConfig(window=40, refit_every=20, refit_lag=0, mixed_share=0.5)
    )
    with pytest.raises(InvalidSnapshot, match="another configuration"):
        after.restore(with_config(learned().snapshot(), without_later_settings))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda config: config.update(semantics=9), "another version: semantics 9 is not known"),
        (lambda config: config.update(novel=1), "another version: setting novel is not known"),
    ],
)
def test_a_snapshot_of_a_newer_version_is_refused_and_changes_nothing(change, said):
    predictor = learned()
    before = predictor.snapshot()
    with pytest.raises(InvalidSnapshot, match=said):
        predictor.restore(with_config(before, change))
    assert predictor.snapshot() == before


def test_the_snapshot_of_a_combiner_from_before_a_setting_is_continued():
    config = CombinerConfig(classes=("a", "b"))
    before, after = Combiner(config), Combiner(config)
    for label in "abbab" * 4:
        before.step([[0.5, 0.1, 0.4], [0.2, 0.3, 0.5]], label)

    def shorten(stored):
        del stored["recalibrate_every"]

    after.restore(with_config(before.snapshot(), shorten))
    assert after.snapshot() == before.snapshot()
    with pytest.raises(InvalidSnapshot, match="semantics 3 is not known"):
        after.restore(with_config(before.snapshot(), lambda stored: stored.update(semantics=3)))
