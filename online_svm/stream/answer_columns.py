"""List the columns of an answer, in the order of a message.

The content of a message, its encoding, its documentation and a single `Prediction` are derived from
this table. A new field needs a line here, an attribute of `PredictionBlock`, and the code that
computes it.
"""

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field


class StrictRecord:
    """Base of published records: pydantic refuses unknown fields, NaN and infinity."""

    __slots__ = ()
    __pydantic_config__ = ConfigDict(extra="forbid", allow_inf_nan=False)


def doc(text: str) -> Any:
    """Return the description of a published field, of which the page of messages is made."""
    return Field(description=text)


Count = Annotated[int, Field(ge=0)]
Probability = Annotated[float, Field(ge=0, le=1)]
Interval = tuple[Probability, Probability]
Status = Literal["ok", "warming"]
Guarantee = Literal["exact", "approximate", "none"]

Kind = Literal[
    "constant", "about", "count", "optional", "label", "category", "own", "members", "action",
    "cost", "wanted", "share", "codes", "list", "pairs", "lists_by_map", "pairs_by_map",
]  # fmt: skip
"""The form in which a block stores a column, which determines its encoding.

- ``constant``: one value for all rows of the block;
- ``about``: a `GuaranteeReason` for all rows, or None;
- ``count``: an integer for each row;
- ``optional``: an integer for each row; -1, and absent from the message, if it does not apply;
- ``label``: an index into the classes, -1 for none;
- ``category``: an integer for each row, -1 for none;
- ``own``: the value of the predicted label, from an array of shape (m, K);
- ``members``: the classes of the row, from an array of shape (m, K) of bool; absent without sets;
- ``action``, ``cost``: the chosen action, absent without decisions, and its expected cost, absent
  without costs;
- ``wanted``, ``share``: whether the label is wanted, and its probability; absent without a label
  budget;
- ``codes``: texts for all rows, absent if there are none;
- ``list``: a row of an array of shape (m, K);
- ``pairs``: the lower and upper value of each class, from two arrays of shape (m, K);
- ``lists_by_map``, ``pairs_by_map``: a row of an array for each published map. The second is absent
  if no published map gives intervals.
"""


@dataclass(frozen=True, slots=True)
class Column:
    """One field of an answer.

    Attributes
    ----------
    name : str
        Name in the message and in `Prediction`.
    kind : Kind
    type : annotation
        Type in the message, for code that checks messages.
    description : str
        Text for the documentation of messages.
    source : tuple of str
        Attributes of `PredictionBlock` with the values; empty for the attribute of the same name.
    unknown : object
        Value of a row without a predicted label. Constants and counts are always known.
    """

    name: str
    kind: Kind
    type: Any
    description: str
    source: tuple[str, ...] = ()
    unknown: object = None

    @property
    def attributes(self) -> tuple[str, ...]:
        """Names of the attributes of `PredictionBlock` with the values."""
        return self.source or (self.name,)


COLUMNS = (
    Column("n", "count", Count, "Examples learned before this entry."),
    Column("label", "label", str | None,
        "The most probable label; null for unseen ones."),
    Column("lower", "own", Probability,
        "Ends of its interval.", unknown=0.0),
    Column("upper", "own", Probability, "Ends of its interval.", unknown=1.0),
    Column("probability", "own", Probability | None, "Probability of `label`.",
        source=("point",)),
    Column("set", "members", list[str | None] | None,
        "With `set_coverage`: the [classes that cannot be excluded](how-to/sets.md), at least "
        "the most probable.", source=("sets",)),
    Column("action", "action", str | None,
        ("With `costs`, after warm-up: the action of least expected cost. With "
        "`promise`: the label or `review`."), source=("action", "actions")),
    Column("expected_cost", "cost", float | None,
        "Its expected cost, with the price of `review`."),
    Column("label_wanted", "wanted", bool | None,
        "With `label_budget`: whether to buy the label.",
        source=("label_draw",)),
    Column("label_probability", "share", Probability | None,
        "Probability of that, 1/k: the label stands for k examples."),
    Column("method", "constant", str | None,
        ("Source of `probabilities`: `experts`, or `venn` of a single machine, or with a given "
         "`taxonomy` and two classes.")),
    Column("interval_level", "constant", Probability | None,
        "Nominal coverage of [`intervals`](measured.md#intervals); null if they equal `venn`."),
    Column("classes", "constant", list[str | None],
        "The sorted labels, the order of all lists; a last null is for unseen ones."),
    Column("probabilities", "list", list[Probability], "Probability of each class.",
        source=("point",), unknown=()),
    Column("intervals", "pairs", list[Interval],
        "Interval of each class, around the probability.", source=("lower", "upper"),
        unknown=()),
    Column("venn", "pairs", list[Interval],
        "Hull of the Venn predictor.",
        source=("venn_lower", "venn_upper"), unknown=()),
    Column("maps", "lists_by_map", dict[str, list[Probability]],
        ("Probability of each class by each published map, and by the learner `psvm`. `implied` "
         "is a heuristic for more than two classes.")),
    Column("map_intervals", "pairs_by_map", dict[str, list[Interval]] | None,
        ("Of maps that have them: belief and plausibility, or the Venn-Abers pair.")),
    Column("scores", "list", list[float],
        "Decision values: one for two classes, positive for `classes[1]`; else one a class.",
        unknown=()),
    Column("svm_label", "label", str | None,
        "The SVM's class, by `scores` alone."),
    Column("category", "category", int | None, "Category of the taxonomy."),
    Column("category_size", "count", Count, "Calibration examples in it."),
    Column("imputed", "optional", Count | None,
        "Named features that are missing or of another kind."),
    Column("model", "constant", Count, "Versions of machines, probability maps and taxonomy."),
    Column("calibration", "constant", Count, "Versions of machines, probability maps and "
                                             "taxonomy."),
    Column("taxonomy", "constant", Count, "Versions of machines, probability maps and taxonomy."),
    Column("guarantee", "constant", Guarantee,
        "[Guarantee](guarantees.md#what-guarantee-means) of `venn` alone."),
    Column("about", "about", dict[str, Any] | None,
        "Why it is not `exact`: `case`, the name of a [case](#cases-of-guarantees), and its "
        "parameters.",
        source=("reason",)),
    Column("notices", "codes", list[str] | None,
        "Codes of the open [notices](explanation/monitors.md#notices), the oldest first."),
)  # fmt: skip
"""All columns of the predictor; the service adds version, status, producer's id and `seq`."""
