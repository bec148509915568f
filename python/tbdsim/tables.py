"""Results as plain rows."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

if TYPE_CHECKING:
    import pandas


class Row:
    """A row of a table: ``row.throughput`` or ``row["throughput"]``. Quantities are in SI units, shares from 0 to 1."""

    def __init__(self, values: dict[str, Any]):
        self.__dict__.update(values)

    def __getitem__(self, column: str) -> Any:
        return self.__dict__[column]

    def __getattr__(self, column: str) -> Any:
        close = difflib.get_close_matches(column, self.__dict__, 1)
        hint = f"; did you mean '{close[0]}'?" if close else ""
        raise AttributeError(f"the table has no column '{column}'{hint}")

    def __iter__(self) -> Iterator[str]:
        return iter(self.__dict__)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Row) and self.__dict__ == other.__dict__

    def __repr__(self) -> str:
        return f"Row({', '.join(f'{name}={value!r}' for name, value in self.__dict__.items())})"

    def to_dict(self) -> dict[str, Any]:
        """The row as a dictionary, columns in order."""
        return dict(self.__dict__)


class Table(Sequence[Row]):
    """Rows in order, and ``totals``: figures of all rows together, or None. Columns, names and units are those of the
    command line's ``--format json`` (docs/formats.md)."""

    def __init__(self, rows: list[dict[str, Any]], totals: dict[str, Any] | None = None,
                 units: dict[str, str] | None = None):
        self._rows = [Row(row) for row in rows]
        self.totals = Row(totals) if totals is not None else None
        self.units = units or {}

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, index: int) -> Row: ...
    @overload
    def __getitem__(self, index: slice) -> list[Row]: ...
    def __getitem__(self, index: int | slice) -> Row | list[Row]:
        return self._rows[index]

    def __repr__(self) -> str:
        shown = "\n".join(f"  {row!r}" for row in self._rows[:10])
        more = f"\n  ... {len(self) - 10} more" if len(self) > 10 else ""
        return f"Table of {len(self)}:\n{shown}{more}"

    def to_pandas(self) -> pandas.DataFrame:
        """A DataFrame with a column for each name; needs pandas."""
        import pandas

        return pandas.DataFrame([row.to_dict() for row in self._rows])

    def to_parquet(self, path: str | Path) -> None:
        """Writes the rows to a Parquet file; needs pandas and pyarrow (``pip install tbdsim[parquet]``)."""
        self.to_pandas().to_parquet(path, index=False, engine="pyarrow")
