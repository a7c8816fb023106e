"""What a validity report says of the most recent scored examples."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ReliabilityBin:
    """One bin of a reliability diagram.

    Attributes
    ----------
    count : int
        Its examples.
    probability : float
        Mean of what was said.
    frequency : float
        Share of its examples where the event happened.
    lower, upper : float
        Where that share lies by chance if the probabilities are right: `consistency_band`.
    """

    count: int
    probability: float
    frequency: float
    lower: float
    upper: float


@dataclass(frozen=True, slots=True)
class WindowScores:
    """Scores of the headline over some examples; all but the count are None without any.

    Attributes
    ----------
    scored : int
        The examples.
    accuracy : float
        Share of them whose predicted label was right.
    probability, lower, upper : float
        Mean of what was announced of that label.
    z : float
        Accuracy less `probability`, in standard deviations that it has if each probability is
        right; None where that is zero. Descriptive.
    log_loss, brier : float
        As in `MethodReport`.
    miscalibration, discrimination, uncertainty : float
        Parts of `brier`, see `corp_decomposition`: the first less the second plus the third. For
        more than two classes sums over the classes, as `brier` is.
    calibration_error : float
        Debiased: `calibration_error` of the probability of the last of two classes, or of the
        predicted label where there are more. None for a single example.
    """

    scored: int
    accuracy: float | None
    lower: float | None
    probability: float | None
    upper: float | None
    z: float | None
    log_loss: float | None
    brier: float | None
    miscalibration: float | None
    discrimination: float | None
    uncertainty: float | None
    calibration_error: float | None


@dataclass(frozen=True, slots=True)
class WeightedScores:
    """The same, weighted: the last example counts 1, each one before it less by the same factor.

    Attributes
    ----------
    weight : float
        Sum of the weights; it approaches (metrics_window + 1) / 2.
    accuracy, probability, lower, upper, log_loss, brier : float
        As in `WindowScores`; None before the first scored example.
    """

    weight: float
    accuracy: float | None
    lower: float | None
    probability: float | None
    upper: float | None
    log_loss: float | None
    brier: float | None


@dataclass(frozen=True, slots=True)
class ClassFigures:
    """How one class came about, beside how probable it was said to be.

    Attributes
    ----------
    label : str or None
        None is the slot of labels not seen yet.
    examples : int
        Those whose label it is.
    frequency, probability : float
        Their share of the window, and the mean probability that was announced for the class.
    z : float or None
        The first less the second, in standard deviations; None where that is zero. Descriptive.
    brier, miscalibration, discrimination, uncertainty : float
        Of the probability of this class against the rest.
    calibration_error : float or None
        Debiased, of the same.
    predicted : int
        Examples for which it was predicted.
    accuracy, announced : float or None
        Share of these that are right, and the mean probability announced for them.
    """

    label: str | None
    examples: int
    frequency: float
    probability: float
    z: float | None
    brier: float
    miscalibration: float
    discrimination: float
    uncertainty: float
    calibration_error: float | None
    predicted: int
    accuracy: float | None
    announced: float | None


@dataclass(frozen=True, slots=True)
class SliceScores:
    """Scores of the examples of one slice.

    Attributes
    ----------
    value : str or None
        The value that they share; None for all values beyond the first 20.
    scores : WindowScores
    """

    value: str | None
    scores: WindowScores


@dataclass(frozen=True, slots=True)
class Descriptive:
    """Statistics that are looked at again and again over a moving window: no tests.

    See `calibration_statistics` and, for the index, `corp_decomposition`. They are of the same
    event as `calibration_error`.
    """

    spiegelhalter_z: float | None
    kolmogorov_smirnov: float
    kuiper: float
    integrated_calibration_index: float


@dataclass(frozen=True, slots=True)
class WindowedReport:
    """The headline's figures over the last `window` scored examples.

    Attributes
    ----------
    window : int
        Examples that it may hold.
    overall : WindowScores
    weighted : WeightedScores
    reliability : list of ReliabilityBin
        Of the same event as `calibration_error`.
    classes : list of ClassFigures
        In the order of the classes. Of more than 32 those with the greatest |z|.
    slices : dict of str to list of SliceScores
        By name; values that no example of the window has are left out.
    descriptive : Descriptive or None
        None without an example.
    """

    window: int
    overall: WindowScores
    weighted: WeightedScores
    reliability: list[ReliabilityBin]
    classes: list[ClassFigures]
    slices: dict[str, list[SliceScores]]
    descriptive: Descriptive | None
