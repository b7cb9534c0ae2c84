# SPDX-License-Identifier: Apache-2.0
"""Expressions of DuckDB's SQL, built with the names that Ibis has for them.

Statistics on samples are written once. On DuckDB they are built from `Column` and `Table`, which
put text together; on Spark and in databases the same code builds Ibis expressions:
`functions_of` returns what belongs to a table. docs/decisions/0127-duckdb-without-ibis.md.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tare.samples.sql.table import Table

_TYPES = {
    "bool": "BOOLEAN", "boolean": "BOOLEAN", "float64": "DOUBLE", "int8": "TINYINT",
    "int16": "SMALLINT", "int32": "INTEGER", "int64": "BIGINT", "uint8": "UTINYINT",
    "uint16": "USMALLINT", "uint32": "UINTEGER", "uint64": "UBIGINT", "string": "VARCHAR",
    "array<string>": "VARCHAR[]", "array<float64>": "DOUBLE[]", "timestamp(9)": "TIMESTAMP_NS",
}  # fmt: skip
_NAMES = {sql: name for name, sql in _TYPES.items()} | {"FLOAT": "float32", "HUGEINT": "int128"}
_BLANKS = "' \t\n\r\v\f'"


class Kind(str):
    """The type of a column, called as in tables/*.toml where a type there has the name."""

    @staticmethod
    def of(sql: str) -> Kind:
        """The kind of a type of DuckDB's."""
        return Kind(_NAMES.get(sql, sql.strip('"').lower()))

    def is_string(self) -> bool:
        return self == "string" or self.startswith("enum")

    def is_boolean(self) -> bool:
        return self in {"bool", "boolean"}

    def is_integer(self) -> bool:
        return self.removeprefix("u").startswith("int")

    def is_numeric(self) -> bool:
        return self.is_integer() or self.startswith(("float", "decimal"))

    def is_timestamp(self) -> bool:
        return self.startswith("timestamp")

    def is_null(self) -> bool:
        return self == "null"

    def is_unknown(self) -> bool:
        return self == "unknown"

    @property
    def timezone(self) -> str | None:
        """Of a timestamp, whether it has a zone."""
        return "UTC" if self == "timestamp with time zone" else None


@dataclass(frozen=True)
class Window:
    """Rows that a window function looks at."""

    sql: str


class Column:
    """An expression over the columns of `table`, under a name."""

    __slots__ = ("_name", "_table", "sql")
    __hash__ = object.__hash__

    def __init__(self, sql: str, table: Table | None = None, name: str = "") -> None:
        self.sql, self._table, self._name = sql, table, name

    def _like(self, sql: str, *others: object) -> Column:
        table = self._table
        for other in others:
            table = table or (other._table if isinstance(other, Column) else None)
        return Column(sql, table)

    def _call(self, function: str, *others: object) -> Column:
        return self._like(f"{function}({', '.join(map(sql_of, (self, *others)))})", *others)

    def _infix(self, operator: str, other: object) -> Column:
        return self._like(f"({self.sql} {operator} {sql_of(other)})", other)

    def _before(self, operator: str, other: object) -> Column:
        return self._like(f"({sql_of(other)} {operator} {self.sql})")

    def __add__(self, other: object) -> Column:
        return self._infix("||" if isinstance(other, str) else "+", other)

    def __radd__(self, other: object) -> Column:
        return self._before("||" if isinstance(other, str) else "+", other)

    def __sub__(self, other: object) -> Column:
        return self._infix("-", other)

    def __rsub__(self, other: object) -> Column:
        return self._before("-", other)

    def __mul__(self, other: object) -> Column:
        return self._infix("*", other)

    __rmul__ = __mul__

    def __truediv__(self, other: object) -> Column:
        return self._infix("/", other)

    def __rtruediv__(self, other: object) -> Column:
        return self._before("/", other)

    def __floordiv__(self, other: object) -> Column:
        return self._like(f"CAST(FLOOR({self.sql} / {sql_of(other)}) AS BIGINT)", other)

    def __mod__(self, other: object) -> Column:
        return self._infix("%", other)

    def __rshift__(self, other: object) -> Column:
        return self._infix(">>", other)

    def __and__(self, other: object) -> Column:
        return self._infix("AND", other)

    __rand__ = __and__

    def __or__(self, other: object) -> Column:
        return self._infix("OR", other)

    def __invert__(self) -> Column:
        return self._like(f"(NOT {self.sql})")

    def __eq__(self, other: object) -> Column:  # type: ignore[override]
        return self._infix("=", other)

    def __ne__(self, other: object) -> Column:  # type: ignore[override]
        return self._infix("<>", other)

    def __lt__(self, other: object) -> Column:
        return self._infix("<", other)

    def __le__(self, other: object) -> Column:
        return self._infix("<=", other)

    def __gt__(self, other: object) -> Column:
        return self._infix(">", other)

    def __ge__(self, other: object) -> Column:
        return self._infix(">=", other)

    def __bool__(self) -> bool:
        raise TypeError("an expression is neither true nor false; combine with & and |")

    def __getitem__(self, key: str | int | Column) -> Column:
        """A value of a JSON object by its name, or of a list by its place, from 0."""
        if isinstance(key, str):
            path = sql_of(f'$."{key}"' if not key.isidentifier() else f"$.{key}")
            return self._like(f"({self.sql} -> {path})")
        if isinstance(key, int):
            return self._like(f"LIST_EXTRACT({self.sql}, {key + 1})")
        at = key.sql
        return self._like(f"LIST_EXTRACT({self.sql}, {at} + CAST({at} >= 0 AS BIGINT))", key)

    def entry(self, key: Column) -> Column:
        """The value of a JSON object under a name that another column has."""
        return self._like(f"({self.sql} -> {key.sql})", key)

    @property
    def json_text(self) -> Column:
        """A JSON text as text; null for other values."""
        return self._like(
            f"CASE WHEN JSON_TYPE({self.sql}) = 'VARCHAR' THEN {self.sql} ->> '$' END"
        )

    @property
    def json_list(self) -> Column:
        """A JSON array as a list; null for other values."""
        return self._like(
            f"CASE WHEN JSON_TYPE({self.sql}) = 'ARRAY' THEN CAST({self.sql} AS JSON[]) END"
        )

    def name(self, name: str) -> Column:
        return Column(self.sql, self._table, name)

    def get_name(self) -> str:
        return self._name

    def table_of(self) -> Table:
        """The table that the column belongs to."""
        return self._of()

    def type(self) -> Kind:
        """Asks the engine, unless it is a column of a table whose types are known."""
        return self._of().kind(self)

    def cast(self, kind: str) -> Column:
        return self._like(f"CAST({self.sql} AS {_TYPES.get(kind, kind)})")

    def try_cast(self, kind: str) -> Column:
        return self._like(f"TRY_CAST({self.sql} AS {_TYPES.get(kind, kind)})")

    def ifelse(self, true: object, false: object) -> Column:
        sql = f"CASE WHEN {self.sql} THEN {sql_of(true)} ELSE {sql_of(false)} END"
        return self._like(sql, true, false)

    def substitute(self, values: dict[str, str]) -> Column:
        cases = " ".join(f"WHEN {sql_of(old)} THEN {sql_of(new)}" for old, new in values.items())
        return self._like(f"CASE {self.sql} {cases} ELSE {self.sql} END")

    def isin(self, values: Iterable[object]) -> Column:
        some = ", ".join(map(sql_of, values))
        return self._like(f"({self.sql} IN ({some}))" if some else "FALSE")

    def between(self, low: object, high: object) -> Column:
        return self._like(f"({self.sql} BETWEEN {sql_of(low)} AND {sql_of(high)})", low, high)

    def fill_null(self, value: object) -> Column:
        return self._call("COALESCE", value)

    def nullif(self, value: object) -> Column:
        return self._call("NULLIF", value)

    def isnull(self) -> Column:
        return self._like(f"({self.sql} IS NULL)")

    def notnull(self) -> Column:
        return self._like(f"({self.sql} IS NOT NULL)")

    def floor(self) -> Column:
        return self._like(f"CAST(FLOOR({self.sql}) AS BIGINT)")

    def round(self) -> Column:
        return self._call("ROUND")

    def abs(self) -> Column:
        return self._call("ABS")

    def ln(self) -> Column:
        return self._call("LN")

    def log2(self) -> Column:
        return self._like(f"LOG(2, {self.sql})")

    def hash(self) -> Column:
        return self._like(f"CAST(CAST(HASH({self.sql}) AS BIT) AS BIGINT)")

    def strip(self) -> Column:
        return self._like(f"TRIM({self.sql}, {_BLANKS})")

    def lower(self) -> Column:
        return self._call("LOWER")

    def concat(self, other: object) -> Column:
        return self._infix("||", other)

    def replace(self, old: str, new: str) -> Column:
        return self._call("REPLACE", old, new)

    def contains(self, text: str) -> Column:
        return self._call("CONTAINS", text)

    def startswith(self, text: str) -> Column:
        return self._call("STARTS_WITH", text)

    def re_search(self, pattern: str) -> Column:
        return self._call("REGEXP_MATCHES", pattern)

    def re_extract(self, pattern: str, group: int) -> Column:
        return self._call("REGEXP_EXTRACT", pattern, group)

    def split(self, separator: str) -> Column:
        return self._call("STR_SPLIT", separator)

    def index(self, value: object) -> Column:
        """The place of a value in a list, from 0; -1 where it is not in it."""
        found = f"LIST_INDEXOF({self.sql}, {sql_of(value)})"
        return self._like(
            f"(CASE WHEN {self.sql} IS NULL THEN NULL ELSE COALESCE({found}, 0) END - 1)"
        )

    def unnest(self) -> Column:
        return self._call("UNNEST")

    def _aggregate(self, call: str, where: Column | None = None) -> Aggregate:
        return Aggregate(
            call if where is None else f"{call} FILTER (WHERE {where.sql})", self._table
        )

    def count(self, where: Column | None = None) -> Column:
        return self._aggregate(f"COUNT({self.sql})", where)

    def sum(self, where: Column | None = None) -> Column:
        return self._aggregate(f"SUM({self.sql})", where)

    def min(self, where: Column | None = None) -> Column:
        return self._aggregate(f"MIN({self.sql})", where)

    def max(self, where: Column | None = None) -> Column:
        return self._aggregate(f"MAX({self.sql})", where)

    def mean(self, where: Column | None = None) -> Column:
        return self._aggregate(f"AVG({self.sql})", where)

    def var(self) -> Column:
        return self._aggregate(f"VAR_SAMP({self.sql})")

    def median(self) -> Column:
        return self.quantile(0.5)

    def quantile(self, at: float | Sequence[float], where: Column | None = None) -> Aggregate:
        places = f"[{', '.join(map(repr, at))}]" if isinstance(at, Sequence) else repr(at)
        return self._aggregate(f"QUANTILE_CONT({self.sql}, {places})", where)

    def nunique(self) -> Column:
        return self._aggregate(f"COUNT(DISTINCT {self.sql})")

    def approx_nunique(self, where: Column | None = None) -> Column:
        return self._aggregate(f"APPROX_COUNT_DISTINCT({self.sql})", where)

    def lag(self) -> Column:
        return self._call("LAG")

    def lead(self) -> Column:
        return self._call("LEAD")

    def over(self, rows: Window | None = None, **parts: Any) -> Column:
        return self._like(f"{self.sql} OVER ({(rows or window(**parts)).sql})")

    def cumsum(self, group_by: Any = None, order_by: Any = None) -> Column:
        return self.sum().over(
            window(group_by=group_by, order_by=order_by, preceding=None, following=0)
        )

    def to_pyarrow(self) -> Any:
        """The values, a chunked array."""
        return self._of().values(self)

    def _of(self) -> Table:
        if self._table is None:
            raise TypeError("a literal belongs to no table")
        return self._table


class RowNumber(Column):
    """The place of a row in its window, from 0."""

    __slots__ = ()

    def over(self, rows: Window | None = None, **parts: Any) -> Column:
        return Column(f"(ROW_NUMBER() OVER ({(rows or window(**parts)).sql}) - 1)")


class Aggregate(Column):
    """What an aggregate gives for a table or a group."""

    __slots__ = ()


def sql_of(value: object) -> str:
    """A value or an expression as SQL."""
    if isinstance(value, Column):
        return value.sql
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, float):
        return f"CAST({value!r} AS DOUBLE)" if isfinite(value) else f"CAST('{value}' AS DOUBLE)"
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return str(int(value))  # type: ignore[call-overload]


def identifier(name: str) -> str:
    """A name of a table or column."""
    return '"' + name.replace('"', '""') + '"'


def literal(value: object, kind: str | None = None) -> Column:
    found = Column(sql_of(value))
    return found if kind is None else found.cast(kind)


def null(kind: str) -> Column:
    return literal(None, kind)


def coalesce(*values: object) -> Column:
    return _function("COALESCE", values)


def greatest(*values: object) -> Column:
    return _function("GREATEST", values)


def least(*values: object) -> Column:
    return _function("LEAST", values)


def or_(*values: Column) -> Column:
    return values[0]._like("(" + " OR ".join(value.sql for value in values) + ")")


def function(name: str, *values: object) -> Column:
    """A function of the engine that has no method here."""
    return _function(name, values)


def _function(name: str, values: Sequence[object]) -> Column:
    columns = [value for value in values if isinstance(value, Column)]
    sql = f"{name}({', '.join(map(sql_of, values))})"
    return columns[0]._like(sql, *columns) if columns else Column(sql)


def cases(*branches: tuple[Column, object], else_: object = None) -> Column:
    whens = " ".join(f"WHEN {when.sql} THEN {sql_of(then)}" for when, then in branches)
    return branches[0][0]._like(f"CASE {whens} ELSE {sql_of(else_)} END")


def row_number() -> RowNumber:
    return RowNumber("ROW_NUMBER() OVER () - 1")


def window(
    group_by: Any = None,
    order_by: Any = None,
    preceding: int | None = -1,
    following: int | None = None,
) -> Window:
    """The rows with equal `group_by`; up to a row with `preceding` None and `following` 0."""
    parts = []
    if columns := keys(group_by):
        parts.append(f"PARTITION BY {columns}")
    if columns := keys(order_by):
        parts.append(f"ORDER BY {columns}")
    if preceding is None and following == 0:
        parts.append("ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW")
    return Window(" ".join(parts))


def keys(by: Any) -> str:
    """Columns by name or as expressions, one or several, separated by commas."""
    several = by if isinstance(by, list | tuple) else [] if by is None else [by]
    return ", ".join(
        identifier(column) if isinstance(column, str) else column.sql for column in several
    )


def union(*tables: Table) -> Table:
    first, *others = tables
    return first.union(*others)


def functions_of(expression: Any) -> Any:
    """`literal`, `coalesce`, `window` ... for expressions of the same kind: these, or Ibis's."""
    from tare.samples.sql.table import Table

    if isinstance(expression, Column | Table):
        return sys.modules[__name__]
    import ibis

    return ibis
