"""Platt (1999): Tables 1 and 2."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import log_expit

from online_svm import PlattScaling
from online_svm.calibration.platt_data import (
    LabelledScores,
    cross_validated_scores,
    holdout_scores,
)
from online_svm.types import Bools, Floats
from scripts.papers import Result, Run
from scripts.papers.platt.tables import claims, rows, training_sets
from scripts.papers.platt.tasks import TASKS, PlattTask
from scripts.parallel import each
from workers.push.datasets import load

PAPER = "Platt (1999), Probabilistic outputs for support vector machines"
DATA = ("a1a", "a9a", "a9a.t", "w1a", "w7a", "w7a.t")

PARTITIONS = 20  # of the three-fold training set, for the tasks that train in a second
NOTES = (
    "All machines are OnlineSVC, this project's own solver. The sigmoid is fitted by Newton's "
    "method on three-fold cross-validated scores; the printed line is that of the seed, the range "
    f"is over {PARTITIONS} random partitions into folds where training takes a second.",
    "The regularised likelihood kernel method, the paper's other column, is not part of this "
    "project.",
)


def run(asked: Run) -> Result:
    """Repeat Table 2 for the SVM with a sigmoid; quick leaves out what trains for minutes.

    ``tasks`` holds every measurement.
    """
    jobs = [
        Job(task, asked.data_dir, asked.seed)
        for task in TASKS
        if task.is_available and not (asked.quick and task.divisor is None)
    ]
    tasks = each(measure, jobs, asked.tell)
    return {
        "rows": rows(tasks),
        "claims": claims(tasks),
        "tables": [training_sets(tasks)],
        "tasks": tasks,
    }


@dataclass(frozen=True, slots=True)
class Job:
    """One task to measure."""

    task: PlattTask
    data_dir: Path | str | None
    seed: int

    def __str__(self) -> str:
        return f"{self.task.name}: {self.task.training} -> {self.task.test}"


def measure(job: Job) -> Result:
    """Train the machine, fit the sigmoid on each training set, and test them all."""
    task, data_dir, seed = job.task, job.data_dir, job.seed
    data, test = load(task.training, data_dir), load(task.test, data_dir)
    positive, truth = data.y == "+1", test.y == "+1"
    machine = task.machine().fit(data.X, positive)
    scores = machine.decision_function(test.X)
    training = LabelledScores(machine.decision_function(data.X), positive)
    validated = cross_validated_scores(machine, data.X, positive, seed=seed)
    sigmoids = {"three-fold": _sigmoid(validated, scores, truth)}
    sigmoids["training scores"] = _sigmoid(training, scores, truth)
    spread = [sigmoids["three-fold"]]
    if task.divisor is not None:
        held = holdout_scores(machine, data.X, positive, seed=seed)
        sigmoids["hold-out 30 %"] = _sigmoid(held, scores, truth)
        for other in range(seed + 1, seed + PARTITIONS):
            folds = cross_validated_scores(machine, data.X, positive, seed=other)
            spread.append(_sigmoid(folds, scores, truth))
    return {
        "name": task.name,
        "n_training": len(data),
        "n_test": len(test),
        "raw_errors": int(((scores > 0) != truth).sum()),
        "sigmoids": sigmoids,
        "model_trust": _sigmoid(validated, scores, truth, "model-trust"),
        "spread": {
            key: [min(s[key] for s in spread), max(s[key] for s in spread)]
            for key in ("errors", "loss", "threshold")
        },
        "partitions": len(spread),
    }


def _sigmoid(
    fitted_on: LabelledScores, scores: Floats, truth: Bools, method: Any = "newton"
) -> Result:
    """Fit a sigmoid and test it: errors at P = 1/2 and -log p, summed over the test set."""
    sigmoid = PlattScaling(method).fit(fitted_on.scores, fitted_on.labels)
    margin = -(sigmoid.A_ * scores + sigmoid.B_)  # the log odds
    return {
        "A": sigmoid.A_,
        "B": sigmoid.B_,
        "fit_loss": sigmoid.loss_,
        "threshold": -sigmoid.B_ / sigmoid.A_,
        "errors": int(((margin > 0) != truth).sum()),
        "loss": float(-log_expit(np.where(truth, margin, -margin)).sum()),
    }
