"""`backtest --ray`: the same results from tasks on a cluster."""

import json
import os
import subprocess
import sys

import pytest
from processes import LIMIT
from ray_nodes import LOOPBACK

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
def test_an_address_without_a_cluster_is_named_before_anything_is_computed(
    run_command, address, said
):
    code, _, err = run_command("backtest", *COMPARED, "--ray", address)
    complaint = err.splitlines()[-1]
    assert (code, address in complaint, said in complaint) == (2, True, True)


def test_ray_and_a_number_of_processes_exclude_each_other(run_command):
    code, _, err = run_command("backtest", *COMPARED, "--ray", "auto", "--processes", "2")
    assert (code, "not both" in err) == (2, True)


def test_without_ray_it_says_what_to_install(run_command, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    code, _, err = run_command("backtest", *COMPARED, "--ray", "auto")
    assert (code, "pip install 'online-svm[ray]'" in err) == (2, True)
