"""The type of a recording, by its first bytes. What a client declares is not trusted."""

ISO_BRANDS = (b"M4A ", b"M4B ", b"mp4", b"isom", b"iso", b"MSNV", b"dash", b"qt  ", b"3gp")
"""The beginnings of the brand of an MP4 file."""


def sniff_audio_type(head: bytes) -> str | None:
    """Return the media type of a file that begins with these bytes (at least 16); None if it is no known audio."""
    if head[:4] == b"RIFF" and head[8:12] == b"WAVE":
        return "audio/wav"
    if head[4:8] == b"ftyp" and head[8:12].startswith(ISO_BRANDS):
        return "audio/mp4"
    if head[:2] in (b"\xff\xf1", b"\xff\xf9"):
        return "audio/aac"
    if head[:3] == b"ID3" or (len(head) > 1 and head[0] == 0xFF and head[1] & 0xE6 in (0xE2, 0xE4, 0xE6)):
        return "audio/mpeg"
    starts = {b"OggS": "audio/ogg", b"fLaC": "audio/flac", b"\x1aE\xdf\xa3": "audio/webm"}
    return starts.get(head[:4])
