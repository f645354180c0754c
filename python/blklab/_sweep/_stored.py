# SPDX-License-Identifier: MIT OR Apache-2.0
"""Rows that lie in folders of Parquet files: those of sweeps, and of surveys."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from blklab._native import InputError
from blklab._sweep._store import parts, read_description

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow
    import pyarrow.dataset


class Stored(ABC):
    """The rows of one or several folders.

    Parameters
    ----------
    folders : sequence of str or path
    what : str
        What has them, for errors: ``a sweep``.
    """

    def __init__(self, folders: Sequence[str | os.PathLike[str]], what: str) -> None:
        if not folders:
            raise InputError(f"{what} has a folder")
        self._folders = [Path(folder) for folder in folders]

    def _descriptions(self) -> list[dict[str, Any]]:
        """What each folder says of itself."""
        return [read_description(folder) for folder in self._folders]

    @property
    def path(self) -> Path:
        """Its folder, the first if there are several."""
        return self._folders[0]

    @property
    def files(self) -> list[str]:
        """The Parquet files with its rows."""
        return [str(path) for folder in self._folders for path in parts(folder, "runs")]

    def _dataset(self, if_empty: str) -> pyarrow.dataset.Dataset:
        """The rows as a dataset of pyarrow; the error says why there are none."""
        import pyarrow.dataset as ds

        files = self.files
        if not files:
            raise InputError(f"{self.path}: {if_empty}")
        return ds.dataset(files, format="parquet")

    @abstractmethod
    def to_arrow(self) -> pyarrow.Table:
        """The rows in memory, in their order."""

    def to_pandas(self) -> pandas.DataFrame:
        """The rows as a data frame of pandas."""
        return self.to_arrow().to_pandas()

    def to_polars(self) -> polars.DataFrame:
        """The rows as a data frame of Polars."""
        import polars

        frame = polars.from_arrow(self.to_arrow())
        assert isinstance(frame, polars.DataFrame)
        return frame
