"""The cells of two fits that share plain runs: drawn, and left out, once for both.

Two recipes are measured against the same plain runs, so the error of those is common to both fits.
A cell is shared when both fits use the very same runs.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from looped.scaling.fit import cells_of
from looped.scaling.law import Floats

SHARED = -1
"""Owner of a cell that both fits use."""


@dataclass(frozen=True, kw_only=True)
class JointCells:
    """All cells of two tables of runs.

    Attributes:
        owners: table of each cell, 0 or 1, or SHARED; shape (cells,).
        keys: for each table the position of each of its runs' cells among all; two of (n,).
    """

    owners: NDArray[np.intp]
    keys: tuple[NDArray[np.intp], ...]

    @classmethod
    def of(cls, tables: Sequence[pd.DataFrame]) -> "JointCells":
        """Of tables whose index tells runs apart, equal where the run is the same."""
        members = [_members(table) for table in tables]
        common = set(members[0]) & set(members[1])
        positions: dict[tuple[int, tuple[int, ...]], int] = {}
        keys = []
        for which, table in enumerate(tables):
            key = np.empty(len(table), dtype=int)
            for runs, own in members[which].items():
                name = (SHARED if runs in common else which, runs)
                key[own] = positions.setdefault(name, len(positions))
            keys.append(key)
        return cls(owners=np.array([owner for owner, _ in positions]), keys=tuple(keys))

    def __len__(self) -> int:
        return len(self.owners)

    @property
    def num_shared(self) -> int:
        """Cells that both fits use."""
        return int((self.owners == SHARED).sum())

    def draws(self, resamples: int, *, seed: int) -> list[Floats]:
        """Weights of the runs of each table when cells are drawn with replacement.

        Shared cells, cells of the first and cells of the second are strata: each keeps its number.

        Returns:
            For each table shape (resamples, n).
        """
        generator = np.random.default_rng(seed)
        drawn = np.zeros((resamples, len(self)))
        for owner in (0, 1, SHARED):
            cells = np.flatnonzero(self.owners == owner)
            if len(cells):
                drawn[:, cells] = generator.multinomial(
                    len(cells), np.full(len(cells), 1 / len(cells)), size=resamples
                )
        return [drawn[:, key] for key in self.keys]

    def without_each(self) -> list[Floats]:
        """Weights of the runs of each table without one cell each, shared ones from both.

        Returns:
            For each table shape (cells, n).
        """
        without = 1.0 - np.eye(len(self))
        return [without[:, key] for key in self.keys]


def _members(table: pd.DataFrame) -> dict[tuple[int, ...], NDArray[np.bool_]]:
    """The runs of each cell, and where in the table they stand."""
    cells = cells_of(table)
    masks = [cells == cell for cell in np.unique(cells)]
    return {tuple(int(i) for i in table.index[own]): own for own in masks}
