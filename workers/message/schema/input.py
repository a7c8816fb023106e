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
        description="Features as JSON: an array of numbers, `[0.5, 1]`, or an object of named"
        ' cells, `{"age": 39}`.',
    )
    xb: bytes | None = Field(None, description="Features as little-endian 64-bit floats.")
    y: str | None = Field(
        None,
        description="Label. Without it the example is answered, not learned; with a `horizon`"
        " the label may follow.",
    )
    p: str | None = Field(
        None,
        description="In place of `y`, for the learner `psvm`: an annotator's probability of "
        "the second class, in [0, 1]. It is learned, but not used for "
        "calibration, maps or figures.",
    )
    id: str | None = Field(
        None,
        description="The producer's id; the answer repeats it. See `dedupe_window`.",
    )
    for_: str | None = Field(
        None,
        alias="for",
        description="Id of an earlier example, whose label `y` is. Only with a `horizon`.",
    )
    time: str | None = Field(
        None,
        description="Milliseconds by the producer's clock, if the `horizon` counts time, and "
        "only then.",
    )
    s: str | None = Field(
        None,
        description='Values of the feed\'s `slices`: `{"country": "DE"}`. They are no features.',
    )
    a: str | None = Field(
        None,
        description="The answer that a scorer gave, in full, to be scored in place of the "
        "worker's own. Only with `given_answers`.",
    )


class DeadLetter(BaseModel):
    """An entry of `dlq`: a copy of a rejected input entry, as fields, under the same entry ID."""

    model_config = ConfigDict(extra="forbid")

    code: str = Field(description="[Reason code](#reason-codes).")
    reason: str = Field(description="What was wrong, for a person.")
    size: int = Field(ge=0, description="Bytes of the entry.")
    head: bytes = Field(
        max_length=1024, description="Its fields as lines `name=value`, up to a KiB."
    )
