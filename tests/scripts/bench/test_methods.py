"""The methods' benchmark: every line names its peer, and what cannot run here is said."""

import sys

import orjson
import pytest

from scripts.bench import evidential, implied, methods, psvm, venn_abers
from scripts.bench.commands import app
from scripts.bench.methods import METHODS, Comparison, Method, Skipped
from scripts.bench.report import Row, silent
from scripts.command_line import main
from workers.push.datasets import DataNotFound

SMALL = {
    "implied": lambda: implied.run(n_models=9),
    "psvm": lambda: psvm.run(sizes=(40, 2000 // 40)),
    "evidential": lambda: evidential.run(n_scores=200, n_timed=1),
    "venn-abers": lambda: venn_abers.run(200, 50),
}


def small(name):
    method = METHODS[name]
    return {name: Method(SMALL[name], method.peer, method.least, method.where)}


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in METHODS if name != "implied"])
def test_every_method_is_measured_against_a_named_peer(name):
    results = list(methods.run(methods=small(name)))
    assert results
    for result in results:
        assert isinstance(result, Comparison)
        assert result.row.ratio == result.row.peer / result.row.ours > 0
        assert METHODS[name].peer in str(result)
        assert f"{result.row.ratio:,.1f} x" in str(result)


def test_the_bank_is_measured_against_separate_fits(data_set):
    data_set("german")
    (result,) = methods.run(methods=small("implied"))
    assert result.row.ratio > 0
    assert result.least == 15.0


def test_a_ratio_is_asked_of_the_rows_that_it_was_set_for():
    measured = {
        "psvm": [Row(f"P-SVM, {m} examples", 1.0, 2.0) for m in (200, 2000)],
        "venn-abers": [Row(f"venn-abers, 9 {s} scores", 1.0, 2.0) for s in ("skewed", "uniform")],
        "evidential": [Row("evidential logistic, 20 examples", 1.0, 2.0)],
    }
    asked = []
    for name, rows in measured.items():
        changed = Method(lambda rows=rows: rows, "", METHODS[name].least, METHODS[name].where)
        asked += [result.least for result in methods.run(methods={name: changed})]
    assert asked == [None, 20.0, 30.0, None, 1000.0]


@pytest.mark.parametrize(("package", "name"), [("clarabel", "psvm"), ("venn_abers", "venn-abers")])
def test_a_peer_that_is_not_installed_is_named_and_the_rest_is_measured(monkeypatch, package, name):
    monkeypatch.setitem(sys.modules, package, None)
    skipped, *rest = methods.run(methods=small(name) | small("evidential"))
    assert isinstance(skipped, Skipped)
    assert "not installed; pip install 'online-svm[dev]'" in str(skipped)
    assert skipped.plain()["skipped"] in str(skipped)
    assert len(rest) == 3


def test_data_that_are_not_there_leave_out_one_method():
    def missing():
        raise DataNotFound("german: get it with scripts/download_data.py")

    (result,) = methods.run(methods={"implied": Method(missing, "SVC", 15.0)})
    assert str(result) == "implied: not measured. german: get it with scripts/download_data.py"


def test_the_command_prints_lines_or_json(monkeypatch, capsys):
    monkeypatch.setattr(methods.run, "__defaults__", (silent, small("evidential")))
    for option, count in (((), 3), (("--json",), 3)):
        with pytest.raises(SystemExit) as ended:
            main(app, "bench", ["methods", *option])
        lines = capsys.readouterr().out.splitlines()
        assert ended.value.code == 0
        assert len(lines) == count
    found = orjson.loads(lines[0])
    assert found["ratio"] == found["peer_seconds"] / found["ours_seconds"]
    assert found["least"] == 1000.0
