"""The pictures, documents, recordings and places in a message of Telegram. Pure."""

from dataclasses import dataclass

from telegram import Location, Message

MEDIA_LIMIT = 20 * 1024 * 1024
"""Bytes of the largest file that Telegram gives a bot."""

TOO_LARGE = "This file is larger than 20 MB. Send a smaller one, or put it into the workspace."
"""What a person is told of a larger file."""


@dataclass(frozen=True, slots=True)
class MediaFile:
    """A file of a message. ``id`` is that by which Telegram returns it, ``size`` its size in bytes, 0 if Telegram does
    not say. ``is_voice`` marks a voice message.
    """

    id: str
    name: str
    media_type: str
    size: int
    is_voice: bool = False


def media_of(message: Message) -> MediaFile | None:
    """Return the file of a message that can be passed on; None if it has none."""
    if message.photo:
        largest = message.photo[-1]
        return MediaFile(largest.file_id, "", "image/jpeg", largest.file_size or 0)
    if message.voice is not None:
        voice = message.voice
        return MediaFile(
            voice.file_id, "", voice.mime_type or "audio/ogg", voice.file_size or 0, is_voice=True
        )
    if message.audio is not None:
        audio = message.audio
        name = audio.file_name or audio.title or ""
        return MediaFile(audio.file_id, name, audio.mime_type or "audio/mpeg", audio.file_size or 0)
    if message.document is not None and message.animation is None:  # a GIF is both, and is a film
        document = message.document
        kind = document.mime_type or "application/octet-stream"
        return MediaFile(document.file_id, document.file_name or "", kind, document.file_size or 0)
    return None


def place_words(message: Message) -> str:
    """Return a place that the person sends in words, "" if there is none."""
    if message.venue is not None:
        venue = message.venue
        return f"My place: {venue.title}, {venue.address} ({_coordinates(venue.location)})"
    return f"My place: {_coordinates(message.location)}" if message.location is not None else ""


def _coordinates(location: Location) -> str:
    accuracy = location.horizontal_accuracy
    within = f", within {accuracy:.0f} m" if accuracy else ""
    return f"latitude {location.latitude:.6f}, longitude {location.longitude:.6f}{within}"
