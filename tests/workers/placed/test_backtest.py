"""`backtest --ray`: the same results from tasks on a cluster."""

import json
import os
import subprocess
import sys

import pytest
from processes import LIMIT
from ray_nodes import LOOPBACK

from workers.cli import app as cli

COMPARED = ["Phishing", "--limit", "150", "--set", "base:window=100,refit_every=50", "--set",
            "wide:gamma=0.1", "--json"]  # fmt: skip


def backtest(*options):
    """Return the results of the command in a process of its own, without what they cost."""
    ended = subprocess.run(
        [sys.executable, "-m", "workers.cli", "backtest", *COMPARED, *options],
        env=os.environ | LOOPBACK, capture_output=True, text=True, timeout=2 * LIMIT,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    found = [json.loads(line) for line in ended.stdout.splitlines()]
    for one in found:
        assert one.pop("microseconds") > 0
    return found


@pytest.mark.slow
def test_tasks_of_a_cluster_give_what_processes_of_this_machine_give(node):
    assert backtest("--ray", node.address) == backtest("--processes", "1")


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("127.0.0.1:1", "nothing answers there"),
        ("http://host:1", "give host:port of its head"),
        ("localhost", "give host:port of its head"),
    ],
)
def test_an_address_without_a_cluster_is_named_before_anything_is_computed(capsys, address, said):
    with pytest.raises(SystemExit) as ended:
        cli.main(["backtest", *COMPARED, "--ray", address])
    assert ended.value.code == 2
    complaint = capsys.readouterr().err.splitlines()[-1]
    assert address in complaint
    assert said in complaint


def test_ray_and_a_number_of_processes_exclude_each_other(capsys):
    with pytest.raises(SystemExit) as ended:
        cli.main(["backtest", *COMPARED, "--ray", "auto", "--processes", "2"])
    assert ended.value.code == 2
    assert "not both" in capsys.readouterr().err


def test_without_ray_it_says_what_to_install(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(SystemExit) as ended:
        cli.main(["backtest", *COMPARED, "--ray", "auto"])
    assert ended.value.code == 2
    assert "pip install 'online-svm[ray]'" in capsys.readouterr().err
