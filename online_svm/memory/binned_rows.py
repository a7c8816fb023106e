"""Bins of the memory's rows, from which its forests are fitted.

The edges of the bins stay until the number of rows has doubled, or there is a further column; then
they are computed again from the raw cells. So most fits need the bins of new rows alone.
"""

from dataclasses import replace

import numpy as np

from online_svm.memory.edges import Edges
from online_svm.memory.encoder import MemoryEncoder
from online_svm.memory.rows import LabelledRows
from online_svm.refit.committee.forest import BINS
from online_svm.storage.state_schema import StateSchema, Stored, floats, number, part
from online_svm.types import Bools, Bytes, Floats


class BinnedRows(Stored):
    """Encoder and edges of the memory, and the bins of the rows of the last fit."""

    _stored = StateSchema(
        part("encoder"), number("_stop"), number("_renewed_at"),
        floats("edges", f"width {BINS - 1}"),
    )  # fmt: skip

    def __init__(self, encoder: MemoryEncoder) -> None:
        self.encoder = encoder
        self.edges: Floats = np.empty((0, BINS - 1))
        self._stop = 0  # number after the newest encoded row
        self._renewed_at = 0  # number of the fit that computed the edges
        # Computed again from the rows after a restore.
        self._bins: Bytes | None = None  # shape (n, width)
        self._numbers = np.empty(0, dtype=np.int64)  # shape (n,); of these rows

    @property
    def are_categories(self) -> Bools:
        """Whether each column with edges holds codes, shape (width,)."""
        return self.encoder.are_categories[: len(self.edges)]

    def update(self, rows: LabelledRows, number: int) -> Bytes:
        """Learn the rows that are new; return the bins of all, shape (n, width).

        `number`: of the row after the last; it decides when edges are renewed.
        """
        is_new = rows.numbers >= self._stop
        self.encoder.add_columns(rows.X[is_new])
        is_wider = len(self.encoder.columns) > len(self.edges)
        if is_wider or number >= 2 * self._renewed_at:
            # Older rows may have values in a further column.
            encoded = self.encoder.encode(rows.X, learn=True)
            self.edges = Edges.fit(encoded, self.encoder.are_categories).values
            self._renewed_at = number
            self._bins = self._binned(encoded)
        else:
            new = self._binned(self.encoder.encode(rows.X[is_new], learn=True))
            old = self._known(rows.chosen(~is_new))
            self._bins = np.concatenate([old, new])
        self._stop, self._numbers = number, rows.numbers
        return self._bins

    def of(self, rows: LabelledRows, edges: Floats) -> Bytes:
        """Return the bins of rows by other edges, those of an earlier fit."""
        encoded = self.encoder.encode(rows.X, learn=False)[:, : len(edges)]
        return Edges(edges).bins(encoded, self.encoder.are_categories[: len(edges)])

    def _known(self, rows: LabelledRows) -> Bytes:
        """Return the bins of rows that were encoded before."""
        if self._bins is None or not np.isin(rows.numbers, self._numbers).all():
            return self.of(rows, self.edges)
        return self._bins[np.searchsorted(self._numbers, rows.numbers)]

    def _binned(self, encoded: Floats) -> Bytes:
        return Edges(self.edges).bins(encoded, self.are_categories)

    def copied_encoder(self) -> MemoryEncoder:
        """Return a copy of the encoder, which later rows do not change."""
        codes = [dict(each) for each in self.encoder.codes]
        return replace(self.encoder, columns=[*self.encoder.columns], codes=codes)
