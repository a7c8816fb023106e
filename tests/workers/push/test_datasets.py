import gzip

import numpy as np
import pytest

from workers.push import datasets as data

CLASS_COUNTS = {
    "a1a": {"-1": 1210, "+1": 395},
    "a9a": {"-1": 24720, "+1": 7841},
    "adult": {"<=50K": 24720, ">50K": 7841},
    "adult.test": {"<=50K": 12435, ">50K": 3846},
    "australian": {"0": 383, "1": 307},
    "bupa": {"1": 145, "2": 200},
    "car": {"unacc": 1210, "acc": 384, "good": 69, "vgood": 65},
    "diabetes": {"0": 500, "1": 268},
    "elec2": {"0": 26075, "1": 19237},
    "german": {"1": 700, "2": 300},
    "german-numeric": {"1": 700, "2": 300},
    "heart": {"1": 150, "2": 120},
    "ionosphere": {"g": 225, "b": 126},
    "sonar": {"M": 111, "R": 97},
    "w1a": {"-1": 2405, "+1": 72},
    "wine": {"3": 10, "4": 53, "5": 681, "6": 638, "7": 199, "8": 18},
}


@pytest.mark.parametrize("name", CLASS_COUNTS)
def test_a_data_set_has_the_published_class_counts(name):
    dataset = data.load(name)
    labels, counts = np.unique(dataset.y, return_counts=True)
    assert dict(zip(labels.tolist(), counts.tolist(), strict=True)) == CLASS_COUNTS[name]
    assert dataset.X.shape == (len(dataset), len(dataset.feature_names))
    assert np.isfinite(dataset.X).all()


def test_a_gzipped_file_is_read_like_a_plain_one(tmp_path):
    (tmp_path / "a1a").write_text("+1 1:1 123:1 \n-1 \n")
    with gzip.open(tmp_path / "w1a.gz", "wt") as f:
        f.write("-1 300:1\n")
    sparse = data.load("a1a", tmp_path)
    assert sparse.X[0].nonzero()[0].tolist() == [0, 122]
    assert not sparse.X[1].any()
    assert data.load("w1a", tmp_path).X[0, 299] == 1.0


def test_a_missing_directory_names_the_download_script(tmp_path, monkeypatch):
    monkeypatch.setenv("ONLINE_SVM_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(data.DataNotFound, match=r"scripts/download_data\.py"):
        data.load("car")


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(data.DataNotFound, match=r"car\.data is not in"):
        data.load("car", tmp_path)
