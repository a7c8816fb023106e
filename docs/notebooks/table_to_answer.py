# %% [markdown]
# # From a table to a calibrated answer
#
# Columns of numbers, texts and gaps go in as they are; each answer has a probability and an
# interval that say how often it is right.
#
# The extra `service` and pandas are all that this notebook imports.

# %%
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from online_svm import OnlineClassifier

rng = np.random.default_rng(0)
n = 3000
table = pd.DataFrame(
    {
        "country": rng.choice(["DE", "FR", "AT"], n),
        "amount": rng.lognormal(4, 1, n).round(2),
        "age": rng.integers(18, 80, n).astype(float),
        "is_new": rng.random(n) < 0.4,
    }
)
table.loc[rng.random(n) < 0.1, "age"] = np.nan
signs = [table.country == "FR", table.amount > 100, table.is_new, table.age < 30]
chance = np.array([0.02, 0.1, 0.35, 0.7, 0.9])[np.sum(signs, axis=0)]
fraud = np.where(rng.random(n) < chance, "fraud", "honest")
table.head(3)

# %% [markdown]
# ## Answer each row before it is learned

# %%
model = OnlineClassifier()
before = model.progressive_proba(table[:2500], fraud[:2500])
right = model.classes_[before.argmax(axis=1)] == fraud[:2500]
print(f"right: {right.mean():.3f}, announced: {before.max(axis=1).mean():.3f}")

# %%
stated = before[500:, 0]
edges = np.quantile(stated, np.linspace(0, 1, 9))
group = np.clip(np.searchsorted(edges, stated, side="right") - 1, 0, 7)
is_fraud = fraud[500:2500] == "fraud"
points, shares = ([v[group == g].mean() for g in range(8)] for v in (stated, is_fraud))
figure, axis = plt.subplots(figsize=(3.5, 3.2))
axis.plot([0, 1], [0, 1], color="lightgrey")
axis.plot(points, shares, "o")
axis.set(xlabel="probability of fraud", ylabel="share of fraud")

# %% [markdown]
# ## Ask about a new row

# %%
row = table[2500:2501]
lower, upper = model.predict_interval(row)[0, 0]
print(f"fraud with {model.predict_proba(row)[0, 0]:.2f}, in [{lower:.2f}, {upper:.2f}]")
for part in model.contributions(row)[0]:
    print(f"{part.name}: {part.effect:+.3f}")

# %%
model.partial_fit(table[2500:], fraud[2500:])  # it goes on learning
model.save("fraud.model")  # without pickle
again = OnlineClassifier.load("fraud.model")
print((again.predict_proba(table) == model.predict_proba(table)).all())
