"""Base of every message."""

from typing import Any

from pydantic import BaseModel, ConfigDict

from workers.message.json_columns import dumps

OPTIONAL = (
    "id", "action", "expected_cost", "map_intervals", "imputed", "windowed", "monitors", "labels",
    "costs", "features",
)  # fmt: skip
"""Keys that are absent where others would be null."""


class Message(BaseModel):
    """A payload: compact JSON, its keys in the order of the fields."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    def plain(self) -> dict[str, Any]:
        """Return the fields as they are sent: optional ones only if they have a value."""
        fields = self.model_dump()
        for name in OPTIONAL:
            if fields.get(name, "") is None:
                del fields[name]
        return fields

    def payload(self) -> bytes:
        """Return the message as it is stored in the stream.

        Examples
        --------
        >>> from workers.message.schema import RejectedMessage
        >>> RejectedMessage(seq=7, n=7, code="not_finite", reason="x[0] is NaN").payload()
        b'{"v":2,"status":"rejected","seq":7,"n":7,"code":"not_finite","reason":"x[0] is NaN"}'
        """
        return dumps(self.plain())
