"""Base class of the scikit-learn estimators that hold a `LabelledPredictor`."""

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from online_svm.errors import InvalidInput, InvalidSnapshot
from online_svm.predictor.labelled_predictor import LabelledPredictor, parameters_of
from online_svm.storage.recording import SavedModel, stored_config
from online_svm.stream.prediction import PredictionBlock
from online_svm.types import Bools, Floats


class LabelledEstimator(ClassifierMixin, BaseEstimator):
    """A classifier whose answers are those of a `LabelledPredictor`; it is saved without pickle."""

    classes_: NDArray[Any]
    _model: LabelledPredictor
    _saved_as: ClassVar[str]
    """The public class; an `OnlineCalibrator` has a configuration with scores alone."""

    def save(self, path: str | PathLike[str]) -> None:
        """Save what was learned to a file, without pickle; `load` continues from it.

        A file of this name is replaced.

        Raises InvalidInput if a label is neither text nor a number nor a boolean; InvalidSnapshot
        if the file is the record of a feed, or no regular one; OSError if it cannot be written.
        """
        check_is_fitted(self, "classes_")
        labels, target = self.classes_.tolist(), Path(path)
        if not all(isinstance(label, bool | int | float | str) for label in labels):
            raise InvalidInput(f"y: labels as {labels[0]!r} cannot be saved; use text or numbers")
        own = {"labels": labels, "dtype": self.classes_.dtype.str}
        SavedModel(own | self._notes(), self._model.predictor.snapshot()).write(target)

    def _notes(self) -> dict[str, Any]:
        """Return what `_note` reads, as JSON values."""
        raise NotImplementedError

    def _note(self, notes: dict[str, Any] | None) -> None:
        """Set the further attributes of a loaded estimator; None if a feed was loaded."""
        raise NotImplementedError

    @classmethod
    def _loaded(cls, path: str | PathLike[str], own: Sequence[str]) -> Self:
        """Return the estimator of a file; `own` parameters are none of its configuration."""
        saved = SavedModel.read(Path(path))
        notes, config = saved.notes, stored_config(saved.snapshot)
        takes_scores = config.scores is not None and config.score_role == "alone"
        kind = "OnlineCalibrator" if takes_scores else "OnlineClassifier"
        if kind != cls._saved_as:
            raise InvalidSnapshot(f"the file holds an {kind}: load it with {kind}.load")
        try:
            labels = () if notes is None else notes["labels"]
            model = LabelledPredictor.restored(config, labels, saved.snapshot)
            if notes is None:
                whole = config.labels == "integer"
                model.texts.add(map(int, model.labels) if whole else model.labels)
            elif {model.texts.text(k) for k in labels} != set(model.predictor.classes):
                raise ValueError("its labels are not those of its predictor")
            names = [name for name in cls._get_param_names() if name not in own]
            made = cls(**parameters_of(config, names, model.texts))
            made._model, made.classes_ = model, sorted_array(model.labels)
            if notes is not None:
                made.classes_ = made.classes_.astype(np.dtype(str(notes["dtype"])))
            made._note(notes)
        except InvalidSnapshot:
            raise
        except (LookupError, TypeError, ValueError) as error:
            raise InvalidSnapshot(f"the file lacks or contradicts itself: {error}") from error
        return made

    @property
    def _order(self) -> list[int]:
        """The model's column of each class in `classes_`."""
        return self._model.columns_of(self.classes_.tolist())

    def _probabilities(self, *blocks: PredictionBlock) -> Floats:
        """Return the probabilities of answers in the order of `classes_`, shape (n, K)."""
        found = np.concatenate([self._model.probabilities(block) for block in blocks])
        ordered: Floats = found[:, self._order]
        return ordered

    def _intervals(self, block: PredictionBlock) -> Floats:
        """Return the intervals of answers in the order of `classes_`, shape (n, K, 2)."""
        return self._model.intervals(block)[:, self._order]

    def _sets(self, block: PredictionBlock) -> Bools:
        """Return the sets of answers in the order of `classes_`, shape (n, K)."""
        return self._model.sets(block)[:, self._order]


def sorted_array(labels: list[Any]) -> NDArray[Any]:
    """Return the sorted labels as an array."""
    found: NDArray[Any] = np.unique(np.array(labels))
    return found
