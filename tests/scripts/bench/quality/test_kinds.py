"""`bench kinds`, on made-up files in the place of the real ones."""

import numpy as np
import pytest

from online_svm import Example, OnlinePredictor, PredictorConfig
from scripts.bench.kept import StreamCell
from scripts.bench.quality.kinds import METHODS, OURS, STREAMS, measure, run
from workers.offline.backtest.prequential import Published
from workers.offline.backtest.result import scores
from workers.push.datasets import ADULT_COLUMNS

COUNT = 320


@pytest.fixture
def data_dir(tmp_path):
    """Files with the columns of Adult and Pima, whose labels depend on a text and on a number."""
    rng = np.random.default_rng(0)
    adult, pima = [], []
    for i in range(COUNT):
        y = int(rng.random() < 0.4)
        texts = {"workclass": "Private" if rng.random() < 0.3 + 0.5 * y else "?",
                 "sex": "Male" if rng.random() < 0.3 + 0.4 * y else "Female",
                 "native-country": f"country {i % 50}"}  # fmt: skip
        cells = [texts.get(name, f"{rng.normal(y):.3f}") for name in ADULT_COLUMNS]
        adult.append(", ".join([*cells, ("<=50K", ">50K")[y]]))
        numbers = rng.integers(0, 4, 8) + 2 * y * (rng.random(8) < 0.5)
        pima.append(",".join(map(str, [*numbers, y])))
    (tmp_path / "adult.data").write_text("\n".join([*adult, "", ""]))
    (tmp_path / "pima-indians-diabetes.data").write_text("\n".join([*pima, ""]))
    return tmp_path


def test_gaps_are_what_each_file_means_by_them_and_the_order_is_the_seeds(data_dir):
    first, again, other = (STREAMS["adult"](data_dir, seed) for seed in (0, 0, 1))
    assert first.values.astype(str).tolist() == again.values.astype(str).tolist()
    assert first.values.astype(str).tolist() != other.values.astype(str).tolist()
    assert first.names == tuple(sorted(ADULT_COLUMNS))
    of = dict(zip(first.names, first.values.T, strict=True))
    assert set(map(str, of["workclass"])) == {"Private", "nan"}
    categories = np.array(first.names)[first.are_categories]
    assert categories.tolist() == ["native-country", "sex", "workclass"]
    removed = STREAMS["adult-gaps"](data_dir, 0).values
    is_gap, was_gap = (values.astype(str) == "nan" for values in (removed, first.values))
    assert is_gap[was_gap].all()
    assert is_gap[~was_gap].mean() == pytest.approx(0.2, abs=0.02)
    assert removed[~is_gap].tolist() == first.values[~is_gap].tolist()
    pima = STREAMS["pima"](data_dir, 0)
    zeros = {name: 0.0 in column for name, column in zip(pima.names, pima.values.T, strict=True)}
    assert [name for name, has in zeros.items() if has] == ["age", "pedigree", "pregnancies"]


def test_ours_is_what_the_default_answers_to_rows_as_they_come(data_dir):
    table = STREAMS["adult-gaps"](data_dir, 0)
    predictor = OnlinePredictor(PredictorConfig(classes=("0", "1")))
    said = []
    for row, code in zip(table.values, table.codes, strict=True):
        x = {name: value for name, value in zip(table.names, row, strict=True) if value == value}
        answer = predictor.step(Example(dict.fromkeys(table.names) | x, str(code)))
        said.append(answer.probabilities if answer.status == "ok" else (0.5, 0.5))
    expected = scores(Published(np.array(said[250:])), ("0", "1"), table.codes[250:])
    found = measure(StreamCell("adult-gaps", 0, OURS, None, data_dir))
    assert found.rows[OURS].log_loss == expected.log_loss


@pytest.mark.slow
def test_one_table_has_every_method_and_all_learn_from_texts_and_gaps(data_dir, tmp_path, capsys):
    results = [*run("adult,car", None, 1, COUNT, 1, tmp_path / "k", data_dir)]
    found = [one.values for one in results if one.values]
    assert [(one["stream"], one["row"]) for one in found] == [("adult", one) for one in METHODS]
    assert max(one["log_loss"] for one in found) < np.log(2.0)
    assert min(one["seconds"] for one in found) > 0.0
    (table,) = [one for one in results if one.lines]
    assert all(str(table).count(method) == 3 for method in METHODS)
    told = capsys.readouterr().err
    assert "12 of 12: car, draw 0, river AMF, one-hot" in told
    assert told.count("not measured: car") == len(METHODS)


@pytest.mark.parametrize("method", ["rolling LR, one-hot", "river AMF, one-hot"])
def test_a_file_of_numbers_alone_is_measured_too(data_dir, method):
    found = measure(StreamCell("pima", 0, method, None, data_dir))
    assert found.rows[method].log_loss < np.log(2.0)
