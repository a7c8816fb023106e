"""ProtocolConfig: settings of `OnlinePredictor` that no feed has, for the protocols of papers."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator
from typing_extensions import override

from online_svm.config import PredictorConfig


class ProtocolConfig(PredictorConfig):
    """Settings of a predictor, with those that a protocol fixes and a feed does not choose.

    Examples
    --------
    >>> paper = ProtocolConfig.paper(["acc", "good", "unacc", "vgood"], gamma=0.5)
    >>> paper.split, paper.refit_every, paper.window, paper.lag, paper.standardizes
    ('oldest', 1, None, 0, False)
    """

    refit_lag: int | None = Field(
        None,
        ge=0,
        description="Learned examples between the start of a refit and its effect. Default: that "
        "of a feed.",
    )
    scale: Literal["standard", "none"] = Field(
        "standard", description="Scaling of the features, fitted on the proper training set."
    )

    train_fraction: Annotated[float, Field(gt=0, lt=1)] | None = Field(
        None, description="Share of the training part. Default: that of a feed."
    )
    C_prob: float = Field(
        1.0, gt=0, le=1e6, description="Penalty of leaving the tube of a probability (psvm)."
    )
    eta: float = Field(
        0.1, ge=1e-6, le=0.499, description="Half the height of that tube; f = 1 means 1 - eta."
    )

    @model_validator(mode="after")
    def _valid_lag(self) -> Self:
        """Refuse a lag that the next refit would overtake."""
        if self.refit_lag is not None and self.refit_lag >= self.distance:
            raise ValueError("refit_lag: must be smaller than refit_every (250 without one)")
        return self

    @property
    @override
    def lag(self) -> int:
        """Learned examples between the freeze of a refit and its activation."""
        return super().lag if self.refit_lag is None else self.refit_lag

    @property
    @override
    def lags_from(self) -> int:
        """Learned examples from which a refit takes effect `lag` examples after its freeze."""
        return super().lags_from if self.refit_lag is None else 0

    @property
    @override
    def training_share(self) -> float:
        """Share of the window in the proper training set."""
        return super().training_share if self.train_fraction is None else self.train_fraction

    @property
    @override
    def tube_penalty(self) -> float:
        """Penalty of leaving the tube of a probability, for the P-SVM."""
        return self.C_prob

    @property
    @override
    def tube_half_height(self) -> float:
        """Half the height of that tube, eta; a score of 1 means the probability 1 - eta."""
        return self.eta

    @property
    @override
    def standardizes(self) -> bool:
        """Whether the features are scaled to mean 0 and variance 1, as in the training set."""
        return self.scale == "standard"

    @classmethod
    def paper(cls, classes: list[str] | tuple[str, ...], **changes: object) -> Self:
        """Return the settings of the online protocol of Lambrou et al. (2012), with `changes`."""
        protocol: dict[str, object] = {
            "classes": tuple(classes), "split": "oldest", "refit_every": 1, "refit_lag": 0,
            "window": None, "scale": "none", "interval_level": None, "monitors": "off",
        }  # fmt: skip
        return cls.model_validate(protocol | changes)
