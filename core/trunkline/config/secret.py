"""A reference to a secret. The value is never stored in the object, so it cannot be shown, logged or saved by
accident.
"""

import os
from collections.abc import Mapping
from typing import Annotated

import msgspec

from trunkline.errors import ConfigError

NAME = r"^[A-Za-z_][A-Za-z0-9_]*$"


class Secret(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A secret in an environment variable, written as ``{ env = "NAME" }`` or ``"$NAME"``."""

    env: Annotated[str, msgspec.Meta(pattern=NAME)]

    def is_set(self, environ: Mapping[str, str] | None = None) -> bool:
        """Report whether the variable has a value that is not empty."""
        return bool((os.environ if environ is None else environ).get(self.env))

    def reveal(self, environ: Mapping[str, str] | None = None) -> str:
        """Return the value. Use it immediately and do not store it.

        Raises:
            ConfigError: the variable is not set or empty.
        """
        value = (os.environ if environ is None else environ).get(self.env)
        if not value:
            raise ConfigError(
                f"The environment variable {self.env}, which holds a secret, is not set.",
                hint=f"Set it before you start: export {self.env}=...",
            )
        return value
