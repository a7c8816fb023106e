"""The lines of Tables 1 and 2 of Platt (1999)."""

from dataclasses import dataclass

from online_svm.svm.online_svc import OnlineSVC

CACHE_MB = 1000.0
PAPER_PAGES, WEB_PAGES = 21_489, 25_057  # of the paper's Web test set, and of w7a.t
OTHER_TEST = "the paper's test set of 21,489 pages is not to be had: w7a.t with 25,057"


@dataclass(frozen=True, slots=True)
class PlattTask:
    """One line of Tables 1 and 2.

    Attributes
    ----------
    name : str
    training, test : str
        Data sets; none where they are not available.
    divisor : int or None
        Of the quadratic kernel ((x.z + 1) / divisor)^2; None for the linear one.
    C : float
    printed : tuple
        Errors of the raw machine, errors with the sigmoid, and -log p on the test set.
    note : str or None
        Why figures differ in any case.
    """

    name: str
    training: str
    test: str
    divisor: int | None
    C: float
    printed: tuple[int, int, int]
    note: str | None = None

    @property
    def is_available(self) -> bool:
        """Whether there is data to run it on."""
        return bool(self.training)

    def machine(self) -> OnlineSVC:
        """Return the machine, not trained yet."""
        if self.divisor is None:
            return OnlineSVC(C=self.C, kernel="linear", cache_mb=CACHE_MB)
        scale = 1.0 / self.divisor
        return OnlineSVC(C=self.C, kernel="poly", degree=2, gamma=scale, coef0=scale)


TASKS = (
    PlattTask("Adult quadratic", "a1a", "a9a.t", 14, 0.3, (2626, 2554, 5772)),
    PlattTask("Web quadratic", "w1a", "w7a.t", 12, 10.0, (444, 452, 1767), OTHER_TEST),
    PlattTask("Adult linear", "a9a", "a9a.t", None, 0.05, (2441, 2442, 5323)),
    PlattTask(
        "Web linear",
        "w7a",
        "w7a.t",
        None,
        1.0,
        (260, 265, 1121),
        f"{OTHER_TEST}; trained on w7a, 24,692 pages, since the paper's 49,749 hold the test part",
    ),
    PlattTask(
        "Reuters linear",
        "",
        "",
        None,
        0.08,
        (1043, 963, 3249),
        "the Reuters collection and its 118 categories are not among the data",
    ),
)
