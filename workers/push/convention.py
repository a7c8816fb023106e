"""The convention of a table: its decimal sign, the order of its dates, its encoding."""

from pydantic import BaseModel, ConfigDict

from workers.push.cell_text import Decimal, Order


class Convention(BaseModel):
    """What holds for every table of a feed; it is stored with the feed."""

    model_config = ConfigDict(frozen=True)

    decimal: Decimal | None = None
    order: Order | None = None  # of day, month and year
    encoding: str | None = None  # of text that is not Unicode
    label_case: str | None = None
    texts: tuple[str, ...] = ()  # columns that are sent as they are
    own_decimal: dict[str, Decimal] = {}  # of columns with another sign than `decimal`
    own_order: dict[str, Order] = {}
    units: dict[str, str] = {}  # currencies of columns, or %
