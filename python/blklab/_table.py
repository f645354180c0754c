# SPDX-License-Identifier: MIT OR Apache-2.0
"""Tables of columns, which other libraries take over without copying."""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from blklab import _native

if TYPE_CHECKING:
    import pandas
    import polars

#: Rows that a notebook shows of a table, at most.
_ROWS_SHOWN = 20


class Table:
    """A table in memory: columns of 64-bit integers, 64-bit floats and texts.

    It speaks Arrow's PyCapsule interface, so ``polars.DataFrame(table)``,
    ``pyarrow.table(table)`` and ``duckdb.sql("select … from table")`` take its columns as they
    lie in memory. Neither of them is needed for the methods here.

    Parameters
    ----------
    columns : mapping of str to sequence
        The columns in order. All have the same length. A column with a float is one of floats;
        None stands for no value.

    Examples
    --------
    >>> table = Table({"job": ["wal", "backup"], "ios": [3, 5]})
    >>> len(table), table.columns
    (2, ['job', 'ios'])
    >>> table["ios"]
    [3, 5]
    """

    def __init__(self, columns: Mapping[str, Sequence[Any]] | _native.Table) -> None:
        if isinstance(columns, _native.Table):
            self._native = columns
        else:
            self._native = _native.Table([(name, [*values]) for name, values in columns.items()])

    @property
    def columns(self) -> list[str]:
        """The columns' names, in order."""
        return self._native.column_names

    def __len__(self) -> int:
        return len(self._native)

    def __getitem__(self, name: str) -> list[Any]:
        return self._native.column(name)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.rows())

    def rows(self) -> list[dict[str, Any]]:
        """The rows, each a dictionary."""
        return self._native.to_pylist()

    def to_dict(self) -> dict[str, list[Any]]:
        """The columns by name, each a list."""
        return self._native.to_pydict()

    def to_pandas(self) -> pandas.DataFrame:
        """The table as a data frame of pandas; by way of pyarrow where that is installed."""
        import pandas

        try:
            import pyarrow
        except ImportError:
            return pandas.DataFrame(self.to_dict())
        return pyarrow.table(self).to_pandas()

    def to_polars(self) -> polars.DataFrame:
        """The table as a data frame of Polars."""
        import polars

        return polars.DataFrame(self)

    def __arrow_c_schema__(self) -> object:
        return self._native.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._native.__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        return f"<blklab.Table of {len(self)} rows: {', '.join(self.columns)}>"

    def _repr_html_(self) -> str:
        columns = [name for name in self.columns if any(v is not None for v in self[name])]
        values = [self[name][:_ROWS_SHOWN] for name in columns]
        return html_table(columns, zip(*values, strict=True), more=len(self) - _ROWS_SHOWN)


def html_table(columns: Sequence[str], rows: Any, more: int = 0) -> str:
    """Rows as a table of HTML."""

    def cell(value: Any) -> str:
        if value is None:
            return "<td></td>"
        if isinstance(value, float):
            return f"<td style='text-align:right'>{value:.6g}</td>"
        if isinstance(value, int):
            return f"<td style='text-align:right'>{value}</td>"
        return f"<td style='text-align:left'>{html.escape(str(value))}</td>"

    head = "".join(f"<th>{html.escape(name)}</th>" for name in columns)
    body = "".join(f"<tr>{''.join(cell(v) for v in row)}</tr>" for row in rows)
    rest = f"<p>and {more} rows more</p>" if more > 0 else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{rest}"
