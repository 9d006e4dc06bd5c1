"""A text that grows at its end, such as the answer of a turn."""


class TextBuilder:
    """The pieces of a text. They are joined when the text is read, so that appending to a long text copies none of it.

    ``str()`` returns the text, ``len()`` the number of its characters.
    """

    __slots__ = ("_length", "_pieces")

    def __init__(self, text: str = "") -> None:
        self._pieces = [text]
        self._length = len(text)

    def __len__(self) -> int:
        return self._length

    def __str__(self) -> str:
        if len(self._pieces) > 1:
            self._pieces = ["".join(self._pieces)]
        return self._pieces[0]

    def append(self, text: str) -> None:
        """Add a piece at the end."""
        self._pieces.append(text)
        self._length += len(text)

    def part(self, begin: int, length: int) -> str:
        """Return at most so many characters from ``begin`` on; "" at the end, which needs no whole text."""
        return str(self)[begin : begin + length] if begin < self._length else ""

    def truncate(self, length: int) -> None:
        """Drop all characters but the first ones. A shorter text stays as it is."""
        if length < self._length:
            self._pieces = [str(self)[:length]]
            self._length = length
