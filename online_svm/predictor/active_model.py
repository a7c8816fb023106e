"""The active model: one refit's machine with its calibration set, counts and maps."""

from copy import deepcopy
from typing import Self

import numpy as np

from online_svm.calibration.one_against_all import OneAgainstAll
from online_svm.config import MIXED, PredictorConfig
from online_svm.predictor.earlier import Earlier
from online_svm.predictor.frequency_interval import FrequencyIntervals
from online_svm.predictor.headline import held_answers
from online_svm.predictor.headlines import follows_recent, headline_from_state, headline_of
from online_svm.predictor.lately import Given, Lately
from online_svm.predictor.published_maps import (
    ClassMap,
    fit_maps,
    implied_probabilities,
    interval_maps,
    maps_from_state,
)
from online_svm.predictor.recent_interval import RecentIntervals
from online_svm.refit.committee.model import CommitteeModel
from online_svm.refit.task import RefitResult
from online_svm.storage.arrays import nest, under
from online_svm.storage.fields import Fields, flag, floats, ints, number
from online_svm.storage.state import State, as_array
from online_svm.stream.answer_columns import Guarantee
from online_svm.stream.labels import ClassView
from online_svm.stream.prediction import PredictionBlock
from online_svm.svm.probabilistic.posterior import posterior, steepness
from online_svm.types import Arrays, Bools, Floats, Ints
from online_svm.venn.protocol import VennSet
from online_svm.venn.registry import VennScheme
from online_svm.venn.taxonomy import svm_classes

TAXONOMY_BINS = 4
"""Parts of a class in the taxonomies class-quantile, class-rank and margin of a feed."""

# Given which examples have labels, the labelled ones are still i.i.d. and independent of T. So the
# theorem holds for them, whatever decides who gets a label; but what an answer is about may yet
# get a probability instead, and nothing is known of how those differ.
SELECTED = (
    "some examples have a probability instead of a label: exact for those that get a label, for "
    "all only if which they get does not depend on the example"
)

ARRIVAL = (
    "maturity is arrival: an example is learned when its label comes, and those whose labels come "
    "soon may be unlike the others"
)

CROSSFIT = (
    "split is crossfit: the calibration scores are out of fold, by machines that trained on the "
    "rest of the calibration set"
)


TIME = "time: a feature is a time, which comes once, so the examples are not i.i.d."
NAMES = "names: more than max_features came, so which are known depends on all examples"

_FIELDS = Fields(
    number("version"), number("calibration_version"), number("learned"), flag("has_probabilities")
)


class ActiveModel:
    """Answers examples and lets the labelled ones join its calibration set.

    Parameters
    ----------
    config : PredictorConfig
    result : RefitResult
        Of the refit that becomes active.
    view : ClassView
        The classes known at its freeze.
    version : int
        Number of models so far.
    training_codes : ndarray of shape (n_training,)
        Label codes of the proper training set, for maps fitted on training scores.
    """

    def __init__(
        self,
        config: PredictorConfig,
        result: RefitResult,
        view: ClassView,
        version: int,
        training_codes: Ints,
    ) -> None:
        self.config, self.result, self.view = config, result, view
        self.version = version
        self.training_columns = view.columns(training_codes)
        taxonomy = config.taxonomy_of(view.n_known)
        self.scheme = VennScheme(
            taxonomy, TAXONOMY_BINS, view.n_known, len(view.classes), config.window
        )
        self.headline = headline_of(config, view.n_known)
        self.lately: Lately | None = None
        if follows_recent(config, view.n_known):
            is_late = config.takes_late_labels
            self.lately = Lately(len(config.members), view.n_known, is_late=is_late)
        self._published = [name for name in config.published if name != MIXED]
        self._interval_maps = interval_maps(config)
        self.maps: dict[str, ClassMap] = {}
        self.calibration_version = 0
        self.learned = 0  # examples since the activation
        self.has_probabilities = False
        self._set: VennSet | None = None
        self._intervals: FrequencyIntervals | RecentIntervals | None = None
        if config.interval_level is not None and view.n_known > 2:
            self._intervals = RecentIntervals(config.interval_level, view)

    @property
    def calibration(self) -> VennSet:
        """The calibration set, once `calibrate` or `from_state` has made it."""
        assert self._set is not None
        return self._set

    def follow(self, before: "ActiveModel") -> None:
        """Take over what outlives a model from the one before."""
        self.headline.follow(before.headline)
        if self.lately is not None and before.lately is not None:
            self.lately.follow(before.lately, self.result.scaling)
        ours, theirs = self._intervals, before._intervals
        if isinstance(ours, RecentIntervals) and isinstance(theirs, RecentIntervals):
            ours.follow(theirs)

    def score(self, X: Floats) -> Floats:
        """Return the scores of unscaled rows, shape (m, n_scores)."""
        return self.result.model.scores(self.result.scaling.transform(X))

    def calibrate(self, codes: Ints, X_since: Floats, calibration_version: int) -> None:
        """Begin the calibration set and fit the maps.

        Parameters
        ----------
        codes : ndarray of shape (n_calibration + len(X_since),)
            Label codes of the available examples outside T, then of those learned since; those
            without a label (-1) stay out of the calibration set.
        X_since : ndarray of shape (m, n_features)
            Examples learned since the freeze.
        calibration_version : int
            Number of calibrations so far.
        """
        columns = self.view.columns(codes)
        labelled = columns >= 0
        self.has_probabilities = not labelled.all() or bool((self.training_columns < 0).any())
        old = self.result.calibration_scores
        first = _first_of_newest(labelled, self.config.window)
        scores = np.concatenate([old[first:], self.score(X_since[max(first - len(old), 0) :])])
        columns, labelled = columns[first:], labelled[first:]
        self._set = self._make_set(scores[labelled], columns[labelled])
        self._count_frequencies()
        self.refit_maps(calibration_version)

    def refit_maps(self, calibration_version: int) -> None:
        """Fit maps and headline on the calibration set as it is now (or on training scores)."""
        self.calibration_version = calibration_version
        if self.config.map_data == "training":
            scores, columns = self.result.training_scores, self.training_columns
        else:
            scores, columns = self.calibration.scores, self.calibration.codes
        # An unseen label has no machine to map; a probability (-1) is no label.
        known = (columns >= 0) & (columns < self.view.n_known)
        self.maps = fit_maps(self.config, scores[known], columns[known])
        self.headline.fit(scores[known], columns[known])

    def answer(
        self,
        X: Floats,
        columns: Ints,
        n: Ints,
        *,
        lacks: str | None = None,
        earlier: Earlier | None = None,
    ) -> PredictionBlock:
        """Answer rows in order; each labelled one joins the calibration set after its answer.

        Parameters
        ----------
        X : ndarray of shape (m, n_features)
        columns : ndarray of shape (m,)
            Class columns of the labels; -1 where there is none.
        n : ndarray of shape (m,)
            Examples learned before each row.
        lacks : str or None
            Why the labels of the window before these rows are not all that they should be.
        earlier : Earlier or None
            Where labels come late, what was said of the rows that are learned.
        """
        rows = self.result.scaling.transform(X)
        model = self.result.model
        odds = None
        if self.lately is not None and isinstance(model, CommitteeModel):
            scores, odds = model.said(rows)
        else:
            scores = model.scores(rows)
        venn = self.calibration.answer(scores, columns)
        headline = self.headline.answer(scores, venn, columns)
        said = None
        if self.lately is not None and odds is not None:
            given = Given(X, rows, odds)
            point, said = self.lately.answer(given, headline.point, columns, earlier)
            headline = held_answers(point, venn)
        lower, upper, level = headline.lower, headline.upper, self.headline.interval_level
        if self._intervals is not None:
            level = self.config.interval_level
            lower, upper = self._intervals.answer(scores, columns, headline.point)
        guarantee, reason = self.guarantee(lacks)
        return PredictionBlock(
            status="ok",
            classes=self.view.classes,
            n=n,
            label=headline.labels(),
            svm_label=svm_classes(scores),
            point=headline.point,
            lower=lower,
            upper=upper,
            venn_point=venn.point,
            venn_lower=venn.lower,
            venn_upper=venn.upper,
            maps=self._probabilities(rows, scores),
            map_intervals=self._map_intervals(scores),
            scores=scores,
            category=venn.category,
            category_size=venn.size,
            imputed=self.result.scaling.imputed(X),
            model=self.version,
            calibration=self.calibration_version,
            taxonomy=self.version,
            guarantee=guarantee,
            reason=reason,
            method=self.headline.method,
            interval_level=level,
            said=said,
        )

    def note_learned(self, codes: Ints) -> None:
        """Count examples that were learned; -1 is the code of one with a probability."""
        self.learned += len(codes)
        if self.config.learner == "psvm":
            self.has_probabilities |= bool((codes < 0).any())

    def copy(self) -> Self:
        """Return a model that goes on from here on its own; what never changes is shared."""
        shared = (self.config, self.result, self.view, self.scheme, self.maps)
        return deepcopy(self, {id(part): part for part in shared})

    def state(self) -> State:
        """Return everything but the configuration."""
        header = _FIELDS.header_of(self) | {"labels": list(self.view.labels)}
        arrays: Arrays = {
            "result": as_array(self.result.state()),
            "training_columns": self.training_columns,
        }
        arrays |= nest("set", self.calibration.state())
        arrays |= nest("headline", self.headline.state())
        if self.lately is not None:
            arrays |= nest("lately", self.lately.state())
        if isinstance(self._intervals, RecentIntervals):
            arrays |= nest("intervals", self._intervals.state())
        for name, fitted in self.maps.items():
            arrays |= nest(f"map.{name}", fitted.state())
        return State(header, arrays)

    @classmethod
    def from_state(cls, state: State, config: PredictorConfig) -> Self:
        """Return the active model that `state` describes."""
        header, arrays = state
        view = ClassView(header["labels"], config.classes is not None)
        result = RefitResult.from_state(arrays["result"].tobytes(), len(config.members))
        machines, classes = result.calibration_scores.shape[1], len(view.classes)
        checked = Fields(
            floats("set.scores", f"n {machines}"), ints("set.codes", "n", below=classes),
            # A probability (-1) is no label.
            ints("training_columns", f"{len(result.training_scores)}", least=-1, below=classes),
        ).values(cls, None, arrays)  # fmt: skip
        active = cls(config, result, view, 0, np.empty(0, dtype=np.int64))
        active.training_columns = checked["training_columns"]
        _FIELDS.fill(active, header, {})
        active._set = active.scheme.from_state(under("set", arrays), result.training_scores)
        if isinstance(active._intervals, RecentIntervals):
            recent, level = under("intervals", arrays), active._intervals.level
            active._intervals = RecentIntervals.from_state(recent, level, view)
        active._count_frequencies()
        active.maps = maps_from_state(under("map", arrays), config, machines)
        active.headline = headline_from_state(under("headline", arrays), config, view.n_known)
        if active.lately is not None:
            active.lately = Lately.from_state(
                under("lately", arrays), len(config.members), view.n_known, result.scaling,
                is_late=config.takes_late_labels,
            )  # fmt: skip
        return active

    def _make_set(self, scores: Floats, columns: Ints) -> VennSet:
        return self.scheme.begin(self.result.training_scores, scores, columns)

    def _count_frequencies(self) -> None:
        """Count the calibration set as it is, for the intervals of two classes, if any are."""
        if self.config.interval_level is None or self.view.n_known > 2:
            return
        self._intervals = FrequencyIntervals(
            self.config.interval_level,
            self.result.training_scores,
            self.calibration.scores,
            self.calibration.codes,
            self.config.window,
        )

    def _padded(self, probabilities: Floats) -> Floats:
        """Append a zero for the slot of unseen labels, to which a map gives nothing."""
        if self.view.declared:
            return probabilities
        return np.concatenate([probabilities, np.zeros((len(probabilities), 1))], axis=1)

    def _probabilities(self, rows: Floats, scores: Floats) -> dict[str, Floats]:
        """Return what each published map gives to scaled rows and their scores, but for mixed."""
        return {name: self._padded(self._by_map(name, rows, scores)) for name in self._published}

    def _by_map(self, name: str, rows: Floats, scores: Floats) -> Floats:
        """Return what one map gives, for the known classes."""
        if name == "implied":
            return implied_probabilities(self.result.banks, rows)
        if name == "psvm":
            return posterior(scores[:, 0], steepness(self.config.eta))
        return self.maps[name].predict_unchecked(scores)

    def _map_intervals(self, scores: Floats) -> dict[str, Floats] | None:
        """Return the intervals of the maps that give one; nothing is known of unseen labels."""
        names = self._interval_maps
        if not names:
            return None
        unseen = np.tile([0.0, 1.0], (len(scores), len(self.view.classes) - self.view.n_known, 1))
        return {
            name: np.concatenate(
                [self._interval_map(name).predict_interval(scores), unseen], axis=1
            )
            for name in names
        }

    def _interval_map(self, name: str) -> OneAgainstAll:
        fitted = self.maps[name]
        assert isinstance(fitted, OneAgainstAll)  # a joint map gives points
        return fitted

    def guarantee(self, lacks: str | None = None) -> tuple[Guarantee, str | None]:
        """Return the guarantee of an answer, and why it is not exact; see `answer`."""
        if self.calibration.reason is not None:
            return "none", self.calibration.reason
        if not self.view.declared:
            return "approximate", "classes are discovered, not declared"
        if self.config.split == "crossfit":
            return "approximate", CROSSFIT
        if self.has_probabilities:
            return "approximate", SELECTED
        if self.config.maturity == "arrival":
            return "approximate", ARRIVAL
        coding = self.result.scaling.coding
        if coding is not None and coding.has_times:
            return "approximate", TIME
        if coding is not None and coding.lacks_names:
            return "approximate", NAMES
        return ("exact", None) if lacks is None else ("approximate", lacks)


def _first_of_newest(labelled: Bools, limit: int | None) -> int:
    """Return the place of the first of the newest `limit` labelled: what is before it is not kept.

    Examples
    --------
    >>> _first_of_newest(np.array([True, True, False, True]), 2)
    1
    """
    places = np.flatnonzero(labelled)
    return 0 if limit is None or len(places) <= limit else int(places[-limit])
