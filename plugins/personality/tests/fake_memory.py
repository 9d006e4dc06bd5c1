"""A memory for tests of the personality tools."""

from datetime import UTC, datetime

from trunkline import MemoryFile, ToolError


class FakeMemory:
    """A memory that answers from this process. ``files`` has the texts by path."""

    def __init__(self, **files: str) -> None:
        self.files = {path.replace("__", "/"): text for path, text in files.items()}

    async def read(self, path: str, version: str | None = None) -> MemoryFile:
        if path not in self.files:
            raise ToolError("It is not there.")
        return MemoryFile(path=path, content=self.files[path], hash="0" * 40, modified_at=datetime.now(UTC))

    async def write(self, path: str, content: str, *, expected: str | None = None) -> str:
        self.files[path] = content
        return "1" * 40
