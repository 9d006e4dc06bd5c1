"""Counts the content of the index."""

import apsw

from trunkline.api.store import IndexStats, VectorStats


def index_stats(connection: apsw.Connection, vectors: VectorStats | None) -> IndexStats:
    """Count everything. The size is that of SQLite's pages, whether it has written them back from its log or not."""

    def number(query: str) -> int:
        return int(connection.execute(query).get)

    def count(table: str) -> int:
        return number(f"SELECT count(*) FROM {table}")

    kinds = connection.execute("SELECT kind, count(*) FROM passages GROUP BY kind ORDER BY kind")
    return IndexStats(
        version=connection.execute("SELECT value FROM meta WHERE key = 'head'").get or "",
        files=count("files"),
        conversations=count("conversations"),
        passages=count("passages"),
        kinds=dict(kinds),
        languages=tuple(name for (name,) in connection.execute("SELECT name FROM languages ORDER BY name")),
        words=count("vocabulary"),
        size=number("PRAGMA main.page_count") * number("PRAGMA main.page_size"),
        vectors=vectors,
    )
