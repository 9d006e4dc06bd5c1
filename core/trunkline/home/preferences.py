"""The owner's preferences, as far as start-up looks at them (PA-F44). They are a plain file in memory."""

import logging
from pathlib import Path

from trunkline._util.regular_file import read_regular
from trunkline._util.toml import read_toml

log = logging.getLogger(__name__)


def check_preferences(memory: Path) -> None:
    """Log what is wrong with ``preferences.toml``. A gap is reported and never stops the start (PA-F43)."""
    path = memory / "preferences.toml"
    try:
        read_toml(read_regular(path).decode("utf-8"))
    except FileNotFoundError:
        log.debug("there is no %s; the defaults are used", path)
    except (OSError, ValueError) as error:
        log.warning("the preferences in %s cannot be read (%s); the defaults are used", path, error)
