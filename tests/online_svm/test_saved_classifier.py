"""A saved estimator goes on as it would have, from a file that holds no code."""

import os

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

from online_svm import OnlineClassifier
from online_svm.errors import InvalidInput, InvalidSnapshot
from online_svm.storage import recording
from online_svm.storage.recording import SavedModel, opened, transaction
from online_svm.storage.state import pack, unpack

QUICK = {"committee": "single", "window": 100, "refit_every": 30}


def rows(labels=("a", "b"), count=150):
    rng = np.random.default_rng(1)
    codes = rng.integers(0, len(labels), count)
    frame = pd.DataFrame(rng.normal(size=(count, 2)) + codes[:, None], columns=["v", "a"])
    frame["unit"] = rng.choice(["kg", "lb"], count)
    return frame, np.array(labels)[codes]


@pytest.mark.parametrize("labels", [("a", "b"), (False, True), (3, 20, 100), (2.0, -1.0)])
@pytest.mark.parametrize("named", [True, False])
def test_what_was_loaded_goes_on_as_the_original(tmp_path, labels, named):
    frame, y = rows(labels)
    X = frame if named else frame[["v", "a"]].to_numpy()
    given = {
        **QUICK,
        "class_weight": {labels[1]: 3.0},
        "order": "given",
        "settings": {"tolerance": 0.05, "metrics_every": 7},
    }
    model = OnlineClassifier(**given).fit(X[:90], y[:90])
    model.save(tmp_path / "model")
    copy = OnlineClassifier.load(tmp_path / "model")
    assert copy.get_params() == model.get_params()
    assert copy.classes_.dtype == model.classes_.dtype
    assert copy.classes_.tolist() == model.classes_.tolist()
    assert copy.n_features_in_ == model.n_features_in_
    assert copy.predict(X).tolist() == model.predict(X).tolist()
    on = [each.progressive_proba(X[90:], y[90:]).tolist() for each in (model, copy)]
    assert on[0] == on[1]
    assert copy.predict_interval(X).tolist() == model.predict_interval(X).tolist()
    assert [*tmp_path.iterdir()] == [tmp_path / "model"]
    if named:
        assert copy.feature_names_in_.tolist() == ["v", "a", "unit"]


def test_a_record_of_a_feed_and_a_device_are_not_replaced(tmp_path):
    frame, y = rows()
    model, path = OnlineClassifier(**QUICK).fit(frame, y), tmp_path / "feed.sqlite"
    with opened(path, "rw") as file, transaction(file):
        file.execute("INSERT INTO facts VALUES ('kind', 'feed')")
    before = path.read_bytes()
    with pytest.raises(InvalidSnapshot, match=r"is the record of a feed: save to another file"):
        model.save(path)
    assert path.read_bytes() == before
    os.mkfifo(tmp_path / "pipe")
    for place in (tmp_path, tmp_path / "pipe"):
        with pytest.raises(InvalidSnapshot, match="is no regular file"):
            model.save(place)
    with pytest.raises(OSError, match="No such file"):
        model.save(tmp_path / "none" / "model")
    assert {each.name for each in tmp_path.iterdir()} == {"feed.sqlite", "pipe"}
    (tmp_path / "text").write_text("something else")
    model.save(tmp_path / "text")
    assert OnlineClassifier.load(tmp_path / "text").classes_.tolist() == ["a", "b"]


def test_a_second_save_does_not_touch_the_file_of_the_first(tmp_path, monkeypatch):
    frame, y = rows()
    model, path = OnlineClassifier(**QUICK).fit(frame, y), tmp_path / "model"
    other = OnlineClassifier(**QUICK).fit(frame[:100], y[:100])
    put = recording.put_snapshot

    def put_and_save(*given):
        monkeypatch.setattr(recording, "put_snapshot", put)
        other.save(path)
        put(*given)

    monkeypatch.setattr(recording, "put_snapshot", put_and_save)
    model.save(path)
    assert OnlineClassifier.load(path).predict_proba(frame).tolist() == (
        model.predict_proba(frame).tolist()
    )
    assert [*tmp_path.iterdir()] == [path]


def test_a_model_without_data_and_labels_that_json_has_not_are_refused(tmp_path):
    with pytest.raises(NotFittedError):
        OnlineClassifier().save(tmp_path / "model")
    frame, y = rows((np.datetime64("2024-01-01"), np.datetime64("2025-01-01")))
    model = OnlineClassifier(**QUICK).fit(frame, y)
    with pytest.raises(InvalidInput, match="cannot be saved; use text or numbers"):
        model.save(tmp_path / "model")
    assert not [*tmp_path.iterdir()]


def test_a_file_that_is_none_or_is_damaged_is_refused(tmp_path):
    frame, y = rows()
    path = tmp_path / "model"
    OnlineClassifier(**QUICK).fit(frame, y).save(path)
    whole = path.read_bytes()
    saved = SavedModel.read(path)
    notes = saved.notes
    for data in (b"", b"nonsense", whole[:-1], whole[: len(whole) // 2], saved.snapshot):
        path.write_bytes(data)
        with pytest.raises(InvalidSnapshot, match=str(path)):
            OnlineClassifier.load(path)
    for other in (
        saved._replace(notes=notes | {"labels": ["a", "c"]}),
        saved._replace(notes=notes | {"labels": ["a", ["b"]]}),
        saved._replace(notes=notes | {"labels": 3}),
        saved._replace(notes=notes | {"dtype": "<i8"}),
        saved._replace(notes=notes | {"dtype": "nonsense"}),
        saved._replace(notes=notes | {"columns": ["v", "b"]}),
        saved._replace(notes={}),
        saved._replace(notes=[1]),
        saved._replace(snapshot=b""),
        saved._replace(snapshot=saved.snapshot[:-1]),
        saved._replace(snapshot=pack(*_changed(saved.snapshot))),
    ):
        other.write(path)
        with pytest.raises(InvalidSnapshot):
            OnlineClassifier.load(path)
    path.write_bytes(whole)
    assert OnlineClassifier.load(path).predict(frame).shape == (150,)


def _changed(snapshot):
    header, arrays = unpack(snapshot)
    return header | {"config": header["config"] | {"window": 5}}, arrays
