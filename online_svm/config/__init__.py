"""All settings of the predictor, with their defaults and limits, in one model."""

import re
from collections.abc import Mapping
from typing import Annotated, Literal, Self

from pydantic import Field, ValidationError, model_validator

from online_svm.config.groups import (
    REVIEW,
    DecisionConfig,
    Label,
    LabelConfig,
    MachineConfig,
    MemberName,
    MonitorConfig,
    Promised,
    ScoreConfig,
    WindowConfig,
    WithoutNul,
)
from online_svm.config.semantics import SEMANTICS, check
from online_svm.errors import InvalidConfig

MapName = Literal[
    "platt", "isotonic", "binning", "venn-abers", "temperature", "vector", "matrix",
    "evidential-binning", "evidential-isotonic", "evidential-logistic", "implied", "mixed",
]  # fmt: skip
MIXED: MapName = "mixed"
SCORE = "score"
"""Name of the given score, a probability, among the published maps; and of its feature."""
SCORE_VERSION = "score_version"
EARLY_UNTIL = 2000
"""Refits at fewer learned examples than this take effect at once.

Answers improve fastest in this phase, and a refit is short. Equal to the default window."""

REFIT_EVERY = 250  # default of `refit_every`; for a committee the shortest distance between refits

MAX_REPRESENTED_EXAMPLES = 100_000
"""Examples for which the labels of `metrics_window` may stand: a report costs as many steps."""

TaxonomyName = Literal["class", "class-rank", "venn-abers"]
DEFAULT_MEMBERS: tuple[MemberName, ...] = ("rbf", "trees", "logistic")
FeatureName = Annotated[str, Field(min_length=1, max_length=256), WithoutNul]
KindName = Literal["number", "boolean", "category", "time"]
"""Kind of a feature; see `online_svm.stream.cells`."""


class PredictorFields(
    LabelConfig, ScoreConfig, MachineConfig, MonitorConfig, WindowConfig, DecisionConfig
):
    """Settings of `OnlinePredictor`, each checked by itself; a subclass checks them together."""

    classes: tuple[Label, ...] | None = Field(
        None, description="The declared labels. Without them classes are discovered."
    )
    labels: Literal["text", "integer"] = Field(
        "text", description="Labels are exact text, or integers ('01' is then 1)."
    )
    features: (
        Annotated[int, Field(ge=1, le=100_000)]
        | tuple[FeatureName, ...]
        | dict[FeatureName, KindName]
        | Literal["infer"]
        | None
    ) = Field(
        None,
        description="Their number; their names, all numbers, none absent; or names with kinds, "
        "as amount=number,country=category. 'infer': named features, whose kinds "
        "are found. Default: as in the first example.",
    )
    missing: Literal["reject", "mean"] = Field(
        "reject",
        description="A missing value in an array rejects the example, or becomes the training "
        "mean. A named one is a gap, which rejects nothing.",
    )

    split: Literal["interleaved", "oldest"] = Field(
        "interleaved", description="Of the window into training and calibration."
    )
    window: Annotated[int, Field(ge=10)] | None = Field(
        2000, description="Learned examples that are kept; none keeps all."
    )
    refit_every: Annotated[int, Field(ge=1)] | None = Field(
        None,
        description="Learned examples between two refits. Default: 250, of a committee up to "
        "2000 while newer models are no better.",
    )

    maps: tuple[MapName, ...] = Field(
        ("platt", "isotonic", "binning"),
        description="Published probability maps; 'mixed' weights them by past probabilities of "
        "the labels.",
    )
    taxonomy: TaxonomyName | None = Field(
        None,
        description="Categories of the Venn predictor. Default: 'class' for a single machine; "
        "for a committee 'venn-abers' with two known classes, else 'class-rank'.",
    )
    interval_level: float | None = Field(
        0.9,
        gt=0,
        lt=1,
        description="Nominal coverage of the headline's interval; none takes the hull of the "
        "Venn predictor.",
    )

    memory: int = Field(
        100_000,
        ge=0,
        le=10_000_000,
        description="Learned examples, the newest, that trees with long memory learn, up to 16 MB "
        "of cells; 0 for none. A single machine, a P-SVM and a score that answers alone have none.",
    )

    metrics_every: int = Field(100, ge=1, description="Learned examples between two reports.")
    seed: int = Field(0, ge=0, lt=2**63, description="Seed of the split.")
    semantics: int = Field(
        SEMANTICS,
        description="Number of the rules by which answers are computed.",
    )

    @model_validator(mode="after")
    def _each_valid(self) -> Self:
        """Refuse values that are invalid under any other settings."""
        check_semantics(self.semantics)
        if self.classes is not None and len(set(self.classes)) != len(self.classes):
            raise ValueError("classes: a label is declared twice")
        if self.classes is not None and len(self.classes) < 2:
            raise ValueError("classes: declare at least two labels, or none to discover them")
        if isinstance(self.features, tuple) and len(set(self.features)) != len(self.features):
            raise ValueError("features: a name is declared twice")
        if isinstance(self.features, tuple | dict) and not self.features:
            raise ValueError("features: declare at least one name")
        if len(set(self.maps)) != len(self.maps):
            raise ValueError("maps: a map is named twice")
        return self


class PredictorConfig(PredictorFields):
    """Settings of `OnlinePredictor`. Two equal configurations give equal answers, byte for byte.

    docs/settings.md describes each under "Predictor". Raises `pydantic.ValidationError`, which
    names the setting, if a value or a combination cannot work.

    Examples
    --------
    >>> PredictorConfig(classes=["ham", "spam"]).window
    2000
    """

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        """Refuse combinations that cannot work."""
        self._check_labels()
        self._check_budget()
        if self.labels == "integer":
            _check_integers(self.classes or ())
        if isinstance(self.class_weight, dict) and self.classes is not None:
            for label in self.class_weight:
                if label not in self.classes:
                    raise ValueError(f"class_weight: {label!r} is not among the declared classes")
        if self.costs is not None and set(self.costs) != set(self.classes or ()):
            raise ValueError(
                f"costs: its rows are of {', '.join(self.costs)[:200]}, the declared classes are "
                f"{', '.join(self.classes or ('none',))[:200]}: declare as classes the true labels "
                "that it has, and no others"
            )
        if self.promise is not None:
            self._check_promise(self.promise)
        if self.learner == "psvm" and len(self.classes or ()) != 2:
            raise ValueError(
                "learner: psvm learns probabilities of the second of two classes; declare two"
            )
        if self.committee not in (None, "single"):
            self._check_committee()
        if self.on_drift != "report":
            self._check_drift()
        self._check_scores()
        if self.scores is not None:
            self._check_examples_with_scores()
        return self

    def _check_budget(self) -> None:
        represented = (self.metrics_window or 0) / (self.label_budget or 1.0)
        if represented > MAX_REPRESENTED_EXAMPLES:
            most = int(MAX_REPRESENTED_EXAMPLES * (self.label_budget or 1.0))
            raise ValueError(
                f"label_budget: the {self.metrics_window} labels of metrics_window stand for "
                f"{represented:,.0f} examples, the limit is {MAX_REPRESENTED_EXAMPLES:,}; set "
                f"metrics_window to at most {most}"
            )

    def _check_examples_with_scores(self) -> None:
        if self.classes is None:
            raise ValueError("scores: declare the classes that a score is about")
        if isinstance(self.features, int | tuple):
            raise ValueError("features: with scores, declare names with their kinds, or nothing")
        if isinstance(self.features, dict) and any(
            name.split(".")[0] in (SCORE, SCORE_VERSION) for name in self.features
        ):
            raise ValueError("features: a name is of the columns of the score; rename it")
        if self.score_role == "alone" and self.committee is not None:
            raise ValueError("committee: score_use = 'alone' trains no machines; leave it out")
        if not self.members:
            raise ValueError("scores: need a committee; take the default learner, split and kernel")

    def _check_promise(self, promise: Mapping[Promised, float]) -> None:
        if self.costs is not None:
            raise ValueError("promise: costs decide as well; set one of the two")
        if self.classes is None or REVIEW in self.classes:
            raise ValueError(f"promise: declare the classes, none of them named {REVIEW!r}")
        if len(self.classes) != 2 and {"miss", "false_alarm"} & promise.keys():
            raise ValueError("promise: miss and false_alarm are for two classes; promise error")
        if self.monitors == "off":
            raise ValueError("promise: an alarm withdraws it; set monitors = 'default'")
        if self.maturity != "horizon":
            raise ValueError(
                "promise: labels that come soon are unlike the others; set maturity = 'horizon'"
            )

    def _check_drift(self) -> None:
        if self.monitors == "off":
            raise ValueError("on_drift: with monitors = 'off' there are no alarms to act on")
        if self.on_drift == "refit" and self.window is None:
            raise ValueError("on_drift: refit needs a window; take on_drift = 'reset'")

    def _check_committee(self) -> None:
        needed = {"learner": "svc", "split": "interleaved", "kernel": "rbf"}
        for name, value in needed.items():
            if getattr(self, name) != value:
                raise ValueError(
                    f"committee: needs {name} = {value!r} (its machines have their own kernels); "
                    "take committee = 'single'"
                )
        if not self.members or len(set(self.members)) != len(self.members):
            raise ValueError("committee: name at least one machine, and each once")

    @property
    def members(self) -> tuple[MemberName, ...]:
        """Names of the machines of the committee; empty for a single machine."""
        committee = self.committee
        if self.score_role == "alone":
            return ("logistic",)
        if committee is None:
            taken = (self.learner, self.split, self.kernel)
            committee = "default" if taken == ("svc", "interleaved", "rbf") else "single"
        if isinstance(committee, tuple):
            return committee
        return DEFAULT_MEMBERS if committee == "default" else ()

    @property
    def has_memory(self) -> bool:
        """Whether trees with long memory join the answers of the committee."""
        return bool(self.memory and self.members) and self.score_role != "alone"

    @property
    def n_scores(self) -> int:
        """Numbers of a score: one for two classes, else one a class; 0 without scores."""
        if self.scores is None or self.classes is None:
            return 0
        return 1 if len(self.classes) == 2 else len(self.classes)

    @property
    def n_reserved(self) -> int:
        """First columns of a row that hold the score and its version; they are no features."""
        return 0 if self.scores is None else self.n_scores + 1

    @property
    def declared_kinds(self) -> tuple[str, ...]:
        """Kinds of the score's columns, and the declared ones of the features, sorted by name.

        A watched score is no feature, as a text is none.
        """
        kinds = ["number"] * self.n_scores + ["category"] * (self.scores is not None)
        if self.score_role == "watched":
            kinds = ["text"] * len(kinds)
        if isinstance(self.features, dict):
            kinds += [self.features[name] for name in sorted(self.features)]
        return tuple(kinds)

    @property
    def training_share(self) -> float:
        """Share of the window in the proper training set.

        A committee needs many examples for its weights and few for calibration: on thirteen
        streams the mean log loss was .2849 with a share of .8, and .2908 with .7.
        """
        if self.score_role == "alone":
            return 0.5  # two or three weights are trained
        return 0.8 if self.members else 0.7

    def taxonomy_of(self, n_known: int) -> TaxonomyName:
        """Return the taxonomy for `n_known` known classes."""
        if self.taxonomy is not None:
            return self.taxonomy
        if not self.members:
            return "class"
        return "venn-abers" if n_known == 2 else "class-rank"

    @property
    def distance(self) -> int:
        """Learned examples between two refits; the minimum if the distance varies."""
        return REFIT_EVERY if self.refit_every is None else self.refit_every

    @property
    def varies_from(self) -> int | None:
        """Learned examples from which refits adapt the distance to the next; None if fixed."""
        return EARLY_UNTIL if self.refit_every is None and self.members else None

    @property
    def lag(self) -> int:
        """Learned examples between the freeze of a refit and its activation."""
        return self.distance - 1

    @property
    def lags_from(self) -> int:
        """Learned examples from which a refit takes effect `lag` examples after its freeze."""
        return EARLY_UNTIL

    @property
    def tube_penalty(self) -> float:
        """Penalty of leaving the tube of a probability, for the P-SVM."""
        return 1.0

    @property
    def tube_half_height(self) -> float:
        """Half the height of that tube, eta; a score of 1 means the probability 1 - eta."""
        return 0.1

    @property
    def standardizes(self) -> bool:
        """Whether the features are scaled to mean 0 and variance 1, as in the training set."""
        return True

    @property
    def dense_until(self) -> int:
        """Learned examples below which a committee is refitted more often; 0 for a single machine.

        Beyond `distance` it is limited to `lags_from`: these refits must not overlap.
        """
        if not self.members:
            return 0
        return max(self.distance, min(4 * self.distance, self.lags_from))

    @property
    def published(self) -> tuple[str, ...]:
        """Names of the published calibrators: `maps`, and the sigmoid of a P-SVM.

        "mixed" is last, because it combines the others.
        """
        fitted = tuple(name for name in self.maps if name != MIXED)
        own = ("psvm",) if self.learner == "psvm" else ()
        if self.scores == "probability":
            own = (SCORE,)
        return (*fitted, *own, *(name for name in self.maps if name == MIXED))


def first_error(error: ValidationError) -> str:
    """Return the first error of a validation as one line."""
    first = error.errors(include_url=False)[0]
    field, message = ".".join(map(str, first["loc"][:1])), str(first["msg"])
    message = message.removeprefix("Value error, ")
    return f"{field}: {message}" if field else message


def check_semantics(number: int) -> None:
    """Raise ValueError, naming the setting, for semantics unknown to this version."""
    try:
        check(number)
    except InvalidConfig as error:
        raise ValueError(f"semantics: {error}") from None


def _check_integers(labels: tuple[str, ...]) -> None:
    for label in labels:
        if not re.fullmatch("0|-?[1-9][0-9]*", label):
            raise ValueError(f"classes: {label!r} is not an integer, but labels = 'integer'")
