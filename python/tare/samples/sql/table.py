# SPDX-License-Identifier: Apache-2.0
"""Queries of DuckDB, put together as text, and the connection that answers them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import count
from typing import TYPE_CHECKING, Any

from tare.samples.sql.column import Aggregate, Column, Kind, identifier, keys, sql_of

if TYPE_CHECKING:
    import pyarrow as pa

_numbers = count(1)


def fresh_name(kind: str) -> str:
    """A name of a table that no other has in this process."""
    return f"{kind}_{next(_numbers)}"


class Database:
    """DuckDB in memory."""

    name = "duckdb"

    def __init__(self) -> None:
        import duckdb

        self.con = duckdb.connect()

    def raw_sql(self, statement: str) -> Any:
        """Raises duckdb.Error."""
        return self.con.execute(statement)

    def query(self, sql: str) -> pa.Table:
        """The rows of a query; whole numbers that sums made wider are int64 again."""
        import pyarrow as pa

        table: pa.Table = self.con.sql(sql).to_arrow_table()
        wide = [pa.types.is_decimal(field.type) and field.type.scale == 0 for field in table.schema]
        if any(wide):
            types = (
                pa.int64() if is_wide else field.type
                for is_wide, field in zip(wide, table.schema, strict=True)
            )
            table = table.cast(pa.schema(list(zip(table.column_names, types, strict=True))))
        return table

    def compile(self, table: Table) -> str:
        return table.sql

    def table(self, name: str) -> Table:
        """A table of the database."""
        return Table(self, identifier(name), None, frozenset([name]), name)

    def sql(self, query: str, schema: Mapping[str, str]) -> Table:
        """The rows of a query whose columns are known."""
        return Table(self, f"({query})", {name: Kind(kind) for name, kind in schema.items()})

    def reading(self, function: str, files: Sequence[str], **options: Any) -> Table:
        """What a function reads from files; `columns` may name them and their types."""
        named = "".join(f", {name} = {_option(value)}" for name, value in options.items())
        kinds = {name: Kind.of(kind) for name, kind in options.get("columns", {}).items()} or None
        return Table(self, f"(FROM {function}({_option(list(files))}{named}))", kinds)

    def read_parquet(self, files: str | Sequence[str], **options: object) -> Table:
        return self.reading("read_parquet", [files] if isinstance(files, str) else files, **options)

    def create_table(self, name: str, rows: Any, *, temp: bool = True) -> Table:  # noqa: ARG002
        """Stores an Arrow table, or the rows of a reader or of a query."""
        if isinstance(rows, Table):
            self.raw_sql(f"CREATE TEMP TABLE {identifier(name)} AS {rows.sql}")
            return Table(self, identifier(name), rows.known(), frozenset([name]), name)
        self.con.register(view := fresh_name("arrow_view"), rows)
        try:
            self.raw_sql(f"CREATE TEMP TABLE {identifier(name)} AS FROM {view}")
        finally:
            self.con.unregister(view)
        return self.table(name)

    def disconnect(self) -> None:
        self.con.close()

    def drop_table(self, name: str) -> None:
        self.raw_sql(f"DROP TABLE {identifier(name)}")


def _option(value: object) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(sql_of, value))}]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{sql_of(k)}: {sql_of(v)}" for k, v in value.items()) + "}"
    return sql_of(value)


Predicate = Column | Callable[["Table"], Column]


class Table:
    """A query, with the names that Ibis has for its parts."""

    def __init__(
        self,
        database: Database,
        source: str,
        kinds: Mapping[str, Kind | None] | Sequence[str] | None = None,
        read: frozenset[str] = frozenset(),
        name: str = "",
    ) -> None:
        """`source` is what stands behind FROM; `kinds` has the columns, with types if known."""
        self._database, self._source, self._read, self._own_name = database, source, read, name
        self._kinds: dict[str, Kind | None] | None = None
        if kinds is not None:
            self._kinds = dict(kinds) if isinstance(kinds, Mapping) else dict.fromkeys(kinds)

    @property
    def sql(self) -> str:
        """The query."""
        inner = self._source
        return inner[1:-1] if inner.startswith("(") else f"FROM {inner}"

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(self._described() if self._kinds is None else self._kinds)

    def schema(self) -> dict[str, Kind]:
        """The type of each column; asks the engine once, unless all are known."""
        if self._kinds is None or None in self._kinds.values():
            return self._described()
        return {name: kind for name, kind in self._kinds.items() if kind is not None}

    def _described(self) -> dict[str, Kind]:
        rows = self._database.raw_sql(f"DESCRIBE {self.sql}").fetchall()
        found = {row[0]: Kind.of(row[1]) for row in rows}
        self._kinds = {**found}
        return found

    def known(self) -> Mapping[str, Kind | None] | None:
        """The columns, and their types, as far as they are known."""
        return self._kinds

    def kind(self, column: Column) -> Kind:
        """The type of an expression; asks the engine unless it is a column of a known type."""
        known = (self._kinds or {}).get(column.get_name())
        if known is not None and column.sql == identifier(column.get_name()):
            return known
        query = f"DESCRIBE SELECT {column.sql} FROM {self._source}"
        return Kind.of(self._database.raw_sql(query).fetchall()[0][1])

    def values(self, column: Column) -> Any:
        """The values of an expression, or the value of an aggregate."""
        return self._database.query(f"SELECT {column.sql} AS value FROM {self._source}")["value"]

    def get_name(self) -> str:
        """Of a table of the database."""
        return self._own_name

    def get_backend(self) -> Database:
        return self._database

    def tables(self) -> frozenset[str]:
        """The tables of the database that the query reads."""
        return self._read

    def __getitem__(self, name: str) -> Column:
        if name not in self.columns:
            raise AttributeError(f"no column {name} among {', '.join(self.columns)}")
        return Column(identifier(name), self, name)

    def __getattr__(self, name: str) -> Column:
        if name.startswith("__"):
            raise AttributeError(name)
        return self[name]

    def _next(
        self, tail: str, columns: Iterable[str] | Mapping[str, Kind] | None = None, *others: Table
    ) -> Table:
        read = self._read.union(*(table._read for table in others))
        kept: Any = self._kinds if columns is None else columns
        if not isinstance(kept, Mapping | None):
            kept = list(kept)
        return Table(self._database, f"({tail})", kept, read)

    def _named(self, columns: Iterable[Any], named: Mapping[str, Any]) -> dict[str, str]:
        found: dict[str, str] = {}
        for column in columns:
            if isinstance(column, str):
                found[column] = identifier(column)
            elif isinstance(column, list | tuple):
                found |= self._named(column, {})
            else:
                found[column.get_name()] = column.sql
        for name, expression in named.items():
            value = (
                expression(self)
                if callable(expression) and not isinstance(expression, Column)
                else expression
            )
            # A text names a column, as in Ibis's select(new="old").
            found[name] = identifier(value) if isinstance(value, str) else sql_of(value)
        return found

    def select(self, *columns: Any, **named: Any) -> Table:
        found = self._named(columns, named)
        known = self._kinds or {}
        kinds = {
            name: known.get(name) if sql == identifier(name) else None
            for name, sql in found.items()
        }
        return self._next(f"SELECT {_listed(found)} FROM {self._source}", kinds)

    def mutate(self, **named: Any) -> Table:
        return self.select(
            *(column for column in self.columns if column not in named),
            **{
                name: sql
                if isinstance(sql, Column)
                else Column(sql_of(sql(self) if callable(sql) else sql))
                for name, sql in named.items()
            },
        )

    def cast(self, kinds: Mapping[str, str]) -> Table:
        return self.select(
            **{
                column: self[column].cast(kinds[column]) if column in kinds else self[column]
                for column in self.columns
            }
        )

    def rename(self, **old: str) -> Table:
        """Columns under new names, `new="old"`."""
        new = {column: name for name, column in old.items()}
        return self.select(**{new.get(column, column): column for column in self.columns})

    def drop(self, *names: Any) -> Table:
        gone = {column for name in names for column in (name if isinstance(name, list) else [name])}
        return (
            self.select(*(column for column in self.columns if column not in gone))
            if gone
            else self
        )

    def filter(self, *predicates: Predicate) -> Table:
        tests = [
            predicate if isinstance(predicate, Column) else predicate(self)
            for predicate in predicates
        ]
        where = " AND ".join(test.sql for test in tests)
        return self._next(f"FROM {self._source} WHERE {where}")

    def distinct(self) -> Table:
        return self._next(f"SELECT DISTINCT * FROM {self._source}")

    def order_by(self, *by: Any) -> Table:
        several = [
            column for part in by for column in (part if isinstance(part, list | tuple) else [part])
        ]
        return self._next(f"FROM {self._source} ORDER BY {keys(several)}")

    def limit(self, rows: int | None, offset: int = 0) -> Table:
        limit = "" if rows is None else f" LIMIT {rows}"
        return self._next(f"FROM {self._source}{limit} OFFSET {offset}")

    def union(self, *others: Table) -> Table:
        columns = self.columns
        queries = [self.sql, *(table.select(*columns).sql for table in others)]
        whole = " UNION ALL ".join(f"({query})" for query in queries)
        return self._next(f"FROM ({whole})", columns, *others)

    def count(self, where: Column | None = None) -> Aggregate:
        return Aggregate(
            "COUNT(*)" if where is None else f"COUNT(*) FILTER (WHERE {where.sql})", self
        )

    def aggregate(self, **named: Any) -> Table:
        return Groups(self, {}).aggregate(**named)

    def group_by(self, *by: Any, **named: Any) -> Groups:
        return Groups(self, self._named(by, named))

    def inner_join(self, other: Table, by: Any) -> Table:
        return self._join("JOIN", other, by)

    join = inner_join

    def left_join(self, other: Table, by: Any) -> Table:
        return self._join("LEFT JOIN", other, by)

    def semi_join(self, other: Table, by: Any) -> Table:
        sql = f"SELECT l.* FROM {self._source} l SEMI JOIN {other._source} r USING ({_list(by)})"
        return self._next(sql, None, other)

    def _join(self, kind: str, other: Table, by: Any) -> Table:
        mine, common = self.columns, [by] if isinstance(by, str) else list(by)
        more = [column for column in other.columns if column not in common]
        clash = {column: f"{column}_right" if column in mine else column for column in more}
        columns = "".join(
            f", r.{identifier(column)} AS {identifier(new)}" for column, new in clash.items()
        )
        sql = (
            f"SELECT l.*{columns} FROM {self._source} l {kind} {other._source} r"
            f" USING ({_list(common)})"
        )
        return self._next(sql, [*mine, *clash.values()], other)

    def rowid(self) -> Column:
        """The place of each row of a table of the database, from 0."""
        return Column("rowid", self)

    def cache(self) -> Table:
        """The rows, computed now."""
        return self._database.create_table(fresh_name("cached"), self)

    def to_pyarrow(self) -> pa.Table:
        return self._database.query(self.sql)

    def rows(self) -> list[dict[str, Any]]:
        """The rows as Python's own values: of a few, this is quicker than Arrow."""
        found = self._database.raw_sql(self.sql)
        names = [column[0] for column in found.description]
        return [dict(zip(names, row, strict=True)) for row in found.fetchall()]

    def stream(self, rows: int) -> Any:
        """A reader of the rows, in order, so many at once."""
        return self._database.con.sql(self.sql).to_arrow_reader(rows)

    def arrays(self) -> dict[str, Any]:
        """The columns as NumPy's arrays (n,)."""
        found: dict[str, Any] = self._database.raw_sql(self.sql).fetchnumpy()
        return found


class Groups:
    """Rows that have the same values of some expressions."""

    def __init__(self, table: Table, by: Mapping[str, str]) -> None:
        self._table, self._by = table, by

    def aggregate(self, **named: Any) -> Table:
        """A row a group: its keys, and aggregates."""
        table = self._table
        values = {
            name: expression(table) if not isinstance(expression, Column) else expression
            for name, expression in named.items()
        }
        columns = {**self._by, **{name: value.sql for name, value in values.items()}}
        grouped = f" GROUP BY {', '.join(self._by.values())}" if self._by else ""
        return table._next(
            f"SELECT {_listed(columns)} FROM {table._source}{grouped}", columns.keys()
        )

    agg = aggregate


def _listed(columns: Mapping[str, str]) -> str:
    return ", ".join(
        sql if sql == identifier(name) else f"{sql} AS {identifier(name)}"
        for name, sql in columns.items()
    )


def _list(by: Any) -> str:
    return keys(by)
