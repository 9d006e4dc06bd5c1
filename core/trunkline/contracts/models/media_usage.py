"""Usage that a vendor bills by another unit than tokens. Data only."""

import msgspec


class MediaUsage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Amounts that a vendor bills by another unit than tokens: images, seconds of audio, characters of spoken text."""

    images: int = 0
    seconds: float = 0.0
    characters: int = 0


NO_MEDIA = MediaUsage()
