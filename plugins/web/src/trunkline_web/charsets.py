"""Bytes of a page as text. What a server says of the encoding counts only if it is true. No I/O."""

import codecs
import re
import unicodedata

_KNOWN = re.compile(
    r"utf-8|utf-16(-le|-be)?|iso8859-\d+|cp(125[0-8]|866|874|932|949)|koi8-[ru]|gb2312|gbk|gb18030|big5(hkscs)?"
    r"|shift_jis|euc_(jp|kr)|iso2022_jp|mac-roman|ascii"
)
"""Python's names of encodings that the web has. Others, such as ``utf-7``, read text out of what is none."""

_NAME = re.compile(r"[A-Za-z0-9_:-]{1,40}")

_DECLARED_CHARSET = re.compile(
    rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?\s*([A-Za-z0-9_:-]{1,40})", re.IGNORECASE
)
_HEAD = 4096

_MARKS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))

_HIDDEN = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2060-\u206f\ufeff\ud800-\udfff\U000e0000-\U000e0fff]"
)
"""Characters that a model reads and a person does not see: control characters, direction marks and tag characters."""


def decode_body(data: bytes, charset: str, *, cut: bool = False) -> str:
    """The text: by its byte order mark, by what the server says, as UTF-8, by what the page says, else as Windows-1252
    with marks for what is none. ``cut``: it may end within a character."""
    for mark, name in _MARKS:
        if data.startswith(mark):
            return _decode_as(data[len(mark) :], name, cut) or data.decode(name, "replace")
    inside = _DECLARED_CHARSET.search(data[:_HEAD])
    for name in (charset, "utf-8", inside[1].decode() if inside else ""):
        text = _decode_as(data, name, cut)
        if text is not None:
            return text
    return data.decode("cp1252", "replace")


def visible_text(text: str) -> str:
    """The text without what nobody sees, and with the usual ends of lines."""
    plain = text.replace("\r\n", "\n").replace("\r", "\n")
    return unicodedata.normalize("NFC", _HIDDEN.sub("", plain))


def _decode_as(data: bytes, name: str, cut: bool) -> str | None:
    """The text if it is in this encoding, and the encoding one of the web's."""
    if not _NAME.fullmatch(name):
        return None
    try:
        codec = codecs.lookup(name)
    except LookupError:
        return None
    if not _KNOWN.fullmatch(codec.name):
        return None
    found = "cp1252" if codec.name in ("ascii", "iso8859-1") else codec.name
    try:
        return codecs.getincrementaldecoder(found)().decode(data, final=not cut)
    except UnicodeError:
        return None
