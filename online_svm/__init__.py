"""Online SVM with calibrated probabilities: pure numerics, without Redis, clock or threads.

The package has the estimators for scikit-learn and river, the errors, and one folder for each part
of the method. The service (`workers`) imports this package, never the reverse. Public names are
imported at first use: scikit-learn takes a second to load, and a program that needs one setting or
one message should not wait for it.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from online_svm.version import __version__ as __version__

if TYPE_CHECKING:
    from online_svm.calibration.evidential.blocks import EvidentialBinning, EvidentialIsotonic
    from online_svm.calibration.evidential.logistic import EvidentialLogistic
    from online_svm.calibration.evidential.masses import (
        dempster_combine,
        inverse_pignistic,
        pignistic,
    )
    from online_svm.calibration.isotonic import IsotonicMap, ScoreBinning
    from online_svm.calibration.joint import MatrixScaling, TemperatureScaling, VectorScaling
    from online_svm.calibration.platt import PlattScaling
    from online_svm.calibration.venn_abers import VennAbers
    from online_svm.calibrator import OnlineCalibrator
    from online_svm.classifier import OnlineClassifier
    from online_svm.config import PredictorConfig
    from online_svm.errors import InvalidExample, OnlineSVMError
    from online_svm.predictor.online_predictor import OnlinePredictor
    from online_svm.stream.input_batch import Example
    from online_svm.stream.prediction import Prediction
    from online_svm.svm.implied_posterior import ImpliedPosterior
    from online_svm.svm.online_svc import OnlineSVC
    from online_svm.svm.probabilistic_svc import ProbabilisticSVC
    from online_svm.svm.probability_svc import ProbabilitySVC
    from online_svm.venn.classifier import InductiveVennClassifier

_MODULES = {
    "EvidentialBinning": "calibration.evidential.blocks",
    "EvidentialIsotonic": "calibration.evidential.blocks",
    "EvidentialLogistic": "calibration.evidential.logistic",
    "Example": "stream.input_batch",
    "ImpliedPosterior": "svm.implied_posterior",
    "InductiveVennClassifier": "venn.classifier",
    "InvalidExample": "errors",
    "IsotonicMap": "calibration.isotonic",
    "MatrixScaling": "calibration.joint",
    "OnlineCalibrator": "calibrator",
    "OnlineClassifier": "classifier",
    "OnlinePredictor": "predictor.online_predictor",
    "OnlineSVC": "svm.online_svc",
    "OnlineSVMError": "errors",
    "PlattScaling": "calibration.platt",
    "Prediction": "stream.prediction",
    "PredictorConfig": "config",
    "ProbabilisticSVC": "svm.probabilistic_svc",
    "ProbabilitySVC": "svm.probability_svc",
    "ScoreBinning": "calibration.isotonic",
    "TemperatureScaling": "calibration.joint",
    "VectorScaling": "calibration.joint",
    "VennAbers": "calibration.venn_abers",
    "dempster_combine": "calibration.evidential.masses",
    "inverse_pignistic": "calibration.evidential.masses",
    "pignistic": "calibration.evidential.masses",
}

__all__ = [
    "EvidentialBinning",
    "EvidentialIsotonic",
    "EvidentialLogistic",
    "Example",
    "ImpliedPosterior",
    "InductiveVennClassifier",
    "InvalidExample",
    "IsotonicMap",
    "MatrixScaling",
    "OnlineCalibrator",
    "OnlineClassifier",
    "OnlinePredictor",
    "OnlineSVC",
    "OnlineSVMError",
    "PlattScaling",
    "Prediction",
    "PredictorConfig",
    "ProbabilisticSVC",
    "ProbabilitySVC",
    "ScoreBinning",
    "TemperatureScaling",
    "VectorScaling",
    "VennAbers",
    "dempster_combine",
    "inverse_pignistic",
    "pignistic",
]


def __getattr__(name: str) -> Any:
    """Import a public name from its module at first use (PEP 562)."""
    if name not in _MODULES:
        raise AttributeError(f"module 'online_svm' has no attribute {name!r}")
    return getattr(import_module(f"online_svm.{_MODULES[name]}"), name)
