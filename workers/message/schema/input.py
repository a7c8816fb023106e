"""The schema of what enters a feed, and of what is kept of rejected entries."""

from pydantic import BaseModel, ConfigDict, Field


class InputEntry(BaseModel):
    """An entry of `in`: fields of a Redis stream entry, not JSON as a whole.

    An example has exactly one of `x` and `xb`. With a `horizon`, an entry with `for`, or one with
    `id`, `y` and no features, is the label of an example that came before. Any other field, or one
    sent twice, is rejected. The field `c` is kept for what is to come, and rejected as not
    supported yet.
    """

    model_config = ConfigDict(extra="forbid", validate_by_name=True)

    x: str | None = Field(
        None,
        description="Features as JSON: an array of numbers, `[0.5, 1]`, or an object of named "
        'numbers, `{"age": 39}`. Named features are ordered by sort.',
    )
    xb: bytes | None = Field(
        None, description="Features as raw little-endian 64-bit floats, 8 bytes each."
    )
    y: str | None = Field(
        None,
        description="Label, UTF-8 text. With neither `y` nor `p` the example is answered, "
        "not learned; with a `horizon` its label may still come.",
    )
    p: str | None = Field(
        None,
        description="In place of `y`, for the learner `psvm`: an annotator's probability that the "
        "label is the second class, a decimal number in [0, 1]. It is learned and counted in `n`, "
        "but takes no part in calibration, in the data of the maps or in the metrics.",
    )
    id: str | None = Field(
        None,
        description="The producer's own id; the answer repeats it. With `dedupe_window`, an id "
        "that was answered lately is answered `duplicate`; so is one that waits for its label.",
    )
    for_: str | None = Field(
        None,
        alias="for",
        description="The id of an example that came before; this entry is its label, `y`. Only if "
        "`horizon` is set.",
    )
    time: str | None = Field(
        None,
        description="When the example happened, in milliseconds by the producer's clock. Every "
        "example has it if the `horizon` counts time, and none else.",
    )
    s: str | None = Field(
        None,
        description="Values of the feed's `slices`, a JSON object of text: "
        '`{"country": "DE"}`. They are no features; reports have figures for each value. A name '
        "may be absent or null.",
    )
    a: str | None = Field(
        None,
        description="An answer that was given before the label `y` came, by a scorer: its payload, "
        "in full. Reports (`headline`) and monitors score its `probabilities` and `intervals` in "
        "place of the worker's own. Only if `given_answers` is set.",
    )


class DeadLetter(BaseModel):
    """An entry of `dlq`: a copy of a rejected input entry, as fields, under the same entry ID."""

    model_config = ConfigDict(extra="forbid")

    code: str = Field(description="Reason code; see the table of codes.")
    reason: str = Field(description="What was wrong, for a person.")
    size: int = Field(ge=0, description="Bytes of the input entry: field names and values.")
    head: bytes = Field(
        max_length=1024, description="Its fields as lines `name=value`, the first KiB of them."
    )
