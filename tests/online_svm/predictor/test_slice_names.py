"""An alarm of a slice names the slice and its value, not the codes that are counted."""

import numpy as np

from online_svm.config import PredictorConfig
from online_svm.predictor.online_predictor import OnlinePredictor
from online_svm.stream.alarm import Alarm
from online_svm.stream.prediction import ValidityReport


def test_an_alarm_of_a_slice_names_its_value_and_so_does_the_report():
    config = PredictorConfig(
        classes=("no", "yes"),
        committee="single",
        slices=("age", "country"),
        refit_every=100,
        refit_lag=0,
        window=200,
    )
    rng, m = np.random.default_rng(0), 1400
    country = rng.choice(["DE", "FR"], m)
    X, y = rng.normal(size=(m, 2)), rng.random(m) < 0.5
    y[(country == "FR") & (np.arange(m) > 700)] = True  # the features do not tell the countries
    labels = np.where(y, "yes", "no").tolist()
    answers = OnlinePredictor(config).step_many(
        X, labels, slices=[(None, str(value)) for value in country]
    )
    alarms = [one for one in answers if isinstance(one, Alarm)]
    assert "country=FR" in {alarm.name for alarm in alarms if alarm.scope == "slice"}
    reports = [one.monitors for one in answers if isinstance(one, ValidityReport)]
    told = {test["name"] for report in reports for test in report.tests if test["scope"] == "slice"}
    assert told <= {"country=FR", "country=DE"}
    assert told
