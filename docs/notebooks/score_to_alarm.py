# %% [markdown]
# # From a model's scores to an alarm
#
# A model was trained once and scores each case; the outcome is known later. The scores are
# calibrated as outcomes come, and an alarm says when the world has changed.
#
# The extra `service` has all that this notebook imports.

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier

from online_svm import OnlineCalibrator, OnlinePredictor, PredictorConfig

rng = np.random.default_rng(0)
X = rng.normal(size=(6000, 2))
shift = np.where(np.arange(6000) < 3000, 0.0, 2.0)  # from case 3,000 on far fewer pay late
late = rng.random(6000) < 1 / (1 + np.exp(shift - 2 * X[:, 0]))
trees = HistGradientBoostingClassifier().fit(X[:1000], late[:1000])
score, late = trees.predict_proba(X[1000:])[:, 1], late[1000:]

# %% [markdown]
# ## Calibrate the score
#
# `progressive_proba` gives the probability of each case before it learns the outcome.

# %%
live = OnlineCalibrator().progressive_proba(score, late)[:, 1]
for name, p in {"the score": score, "calibrated": live}.items():
    announced, happened = p[2000:].mean(), late[2000:].mean()
    print(f"{name}: late announced {announced:.3f}, happened {happened:.3f}")

# %%
mean = np.ones(300) / 300
figure, axis = plt.subplots(figsize=(7, 2.8))
for name, p in {"happened": late, "the score": score, "calibrated": live}.items():
    axis.plot(np.convolve(p, mean, mode="valid"), label=name)
axis.set(xlabel="case", ylabel="late, mean of 300")
axis.legend(frameon=False, ncols=3)
# %% [markdown]
# ## Be told
#
# The predictor of a feed gives the same answers, and reports and alarms between them. Without a
# change, a false alarm ever comes with probability .01 at most.

# %%
predictor = OnlinePredictor(PredictorConfig(classes=["good", "late"], scores="probability"))
schema = predictor.schema
rows = np.array([schema.row(schema.scored(None, s, None)) for s in score])
found = predictor.step_many(rows, np.where(late, "late", "good").tolist())
for each in found:
    if type(each).__name__ == "Alarm":
        print(f"after {each.n:,} outcomes: {each.words}")

# %% [markdown]
# The change came after 2,000 outcomes. As a service, with outcomes that come later, the same is
# `online-svm worker risk --scores probability --classes good,late --horizon 10000`; a webhook
# gets the alarm, and `online-svm status risk` says in a sentence what holds.
