"""The section ``[plugins.redaction]``."""

import re

import msgspec

from trunkline import ConfigError

SECRET = "SECRET"
"""The label of secrets that are found by their form or by a name beside them."""

_LABEL = re.compile(r"[A-Za-z][A-Za-z_]{0,31}")


class RedactionSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``[plugins.redaction]``.

    ``enabled`` switches redaction on. ``secrets`` are keys with a known form, and values that stand beside a name such
    as ``password``. ``patterns`` are regular expressions (RE2) of further texts, by a label: ``{ customer =
    "KD-[0-9]{6}" }``; the model sees the label. ``files`` permits images, documents and
    recordings, which are sent as they are.
    """

    enabled: bool = False
    secrets: bool = True
    patterns: dict[str, str] = {}
    files: bool = False

    def __post_init__(self) -> None:
        for label, pattern in self.patterns.items():
            place = f"plugins.redaction.patterns.{label}"
            if not _LABEL.fullmatch(label) or label.upper() == SECRET:
                raise ConfigError(
                    f"{place} has no valid label.",
                    hint=f"A label is a word of letters and underscores other than {SECRET.lower()}, such as customer.",
                )
            _check_pattern(place, pattern)


def _check_pattern(place: str, pattern: str) -> None:
    import re2

    options = re2.Options()
    options.log_errors = False  # RE2 would print them, too
    try:
        matches_nothing = re2.compile(pattern, options).search("") is not None
    except re2.error as error:
        why = error.args[0].decode(errors="replace") if isinstance(error.args[0], bytes) else str(error)
        raise ConfigError(
            f"{place} is no regular expression: {why}.", hint="Write it in the syntax of RE2."
        ) from error
    if matches_nothing:
        raise ConfigError(
            f"{place} matches an empty text, so it would replace nothing everywhere.",
            hint="Write an expression that needs at least one character.",
        )
