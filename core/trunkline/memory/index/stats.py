"""What the index holds, counted."""

from pathlib import Path

import apsw

from trunkline.messages.indexing import IndexStats, VectorStats


def index_stats(connection: apsw.Connection, database: Path, vectors: VectorStats | None) -> IndexStats:
    """Count everything. What SQLite has not yet written back into ``database`` counts to its size too."""

    def count(table: str) -> int:
        return int(connection.execute(f"SELECT count(*) FROM {table}").get)

    files = (database, database.with_name(f"{database.name}-wal"))
    kinds = connection.execute("SELECT kind, count(*) FROM passages GROUP BY kind ORDER BY kind")
    return IndexStats(
        version=connection.execute("SELECT value FROM meta WHERE key = 'head'").get or "",
        files=count("files"),
        conversations=count("conversations"),
        passages=count("passages"),
        kinds=dict(kinds),
        languages=tuple(name for (name,) in connection.execute("SELECT name FROM languages ORDER BY name")),
        words=count("vocabulary"),
        size=sum(file.stat().st_size for file in files if file.exists()),
        vectors=vectors,
    )
