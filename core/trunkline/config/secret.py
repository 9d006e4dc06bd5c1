"""A reference to a secret. The value itself is never held, so it cannot be shown, logged or stored by accident."""

import os
from collections.abc import Mapping
from typing import Annotated

import msgspec

from trunkline.errors import ConfigError

NAME = r"^[A-Za-z_][A-Za-z0-9_]*$"


class Secret(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A secret that an environment variable holds; written ``{ env = "NAME" }`` or ``"$NAME"``."""

    env: Annotated[str, msgspec.Meta(pattern=NAME)]

    def is_set(self, environ: Mapping[str, str] | None = None) -> bool:
        """Report whether the variable holds anything."""
        return bool((os.environ if environ is None else environ).get(self.env))

    def reveal(self, environ: Mapping[str, str] | None = None) -> str:
        """The value. Use it at once and keep it nowhere.

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
