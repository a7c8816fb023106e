"""The schema of the answers of a combination: `out` of the feed that `combine` writes."""

from dataclasses import replace
from typing import Literal

from pydantic import Field, create_model

from online_svm.stream.answer_columns import COLUMNS, Column, Probability, Status
from workers.message.schema.answer import AnswerHead, fields_of
from workers.message.schema.base import Message


class CombinedSource(Message):
    """What one source of a combination says of the last class."""

    belief: Probability = Field(description="Bel of the last class.")
    plausibility: Probability = Field(description="Pl of the last class.")


_COMBINED = {
    "n": "Labels learned before this entry.",
    "label": "The label with the larger probability.",
    "lower": "Bel of it, or `probability` where that is less.",
    "upper": "Pl of it, or `probability` where that is more.",
    "probability": "Recalibrated; the pignistic one before the first recalibration.",
    "method": "`pignistic`, then `platt` or `isotonic`.",
    "interval_level": "Always null.",
    "probabilities": "Recalibrated probability of each class.",
    "intervals": "Made as `lower` and `upper`.",
    "venn": "Bel and Pl of each class.",
    "maps": "`pignistic`: ignorance shared equally.",
    "scores": "One: ln(Pl(`classes[1]`) / Pl(`classes[0]`)).",
    "svm_label": "The more plausible class.",
    "category": "Always null.",
    "category_size": "Labels of the recalibration.",
    "imputed": "Always absent.",
    "model": "Always 0.",
    "calibration": "Version of the recalibration.",
    "taxonomy": "Always 0.",
    "guarantee": "Always `none`: sources that learned the same labels are no independent evidence.",
}
"""What a column means in the answer of a combination, where it means something else."""

_OF_SOURCES = (
    Column("rule", "constant", Literal["dempster", "cautious"], "The rule."),
    Column(
        "sources",
        "constant",
        dict[str, CombinedSource | None],
        "What each said; null (warming, rejected) counts as ignorance.",
    ),
)


class CombinedHead(AnswerHead):
    """What stands in front of the columns in the answer of a combination."""

    status: Status = Field(description="`warming` while every source is.")
    seq: int = Field(ge=0, description="Answers of the first source before this one.")


CombinedMessage = create_model(
    "CombinedMessage",
    __base__=CombinedHead,
    __doc__="""Answer of a combination to one id, in the `out` of the feed that `combine` writes.

    Its entry ID is that of the answer of the first source. It has the fields of any answer, with
    the meanings below, and two more.
    """,
    **fields_of(
        replace(
            column,
            type=Literal["none"] if column.name == "guarantee" else column.type,
            description=_COMBINED.get(column.name, column.description),
        )
        for column in COLUMNS + _OF_SOURCES
    ),
)
