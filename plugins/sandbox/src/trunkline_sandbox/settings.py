"""The section ``[plugins.sandbox]``."""

from pathlib import Path
from typing import Literal

import msgspec


class SandboxSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``[plugins.sandbox]``. ``backend`` is what programs run in; ``auto`` takes bubblewrap where it works,
    else Docker. ``system`` names further files and folders of this machine that every program may read, such as
    ``/nix`` or ``/opt/tools``."""

    backend: Literal["auto", "bubblewrap"] = "auto"
    system: tuple[Path, ...] = ()
