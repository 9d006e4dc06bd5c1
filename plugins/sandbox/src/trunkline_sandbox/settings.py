"""The section ``[plugins.sandbox]``."""

from pathlib import Path
from typing import Annotated, Literal

import msgspec


class SandboxSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``[plugins.sandbox]``. ``backend`` is what programs run in; ``auto`` takes bubblewrap where it works, else
    Docker. One that is named and does not work is not replaced by the other: programs are refused.

    ``workspace_mb`` is how many MiB a workspace may hold on the disk: a program that fills it beyond that is ended.
    Where a workspace holds more already, a program may add 64 MiB.

    Of bubblewrap: ``readable_paths`` names further files and folders of this machine that every program may read, such
    as ``/nix`` or ``/opt/tools``. Of Docker: ``image`` is what containers are made of; it needs ``/bin/sh``, ``env``
    and ``dd``. Only with ``pull`` is it brought from a registry when it is missing. ``warm_containers`` is how many
    containers are kept ready for the programs that ran lately."""

    backend: Literal["auto", "bubblewrap", "docker"] = "auto"
    workspace_mb: Annotated[int, msgspec.Meta(ge=64)] = 4096
    readable_paths: tuple[Path, ...] = ()
    image: Annotated[str, msgspec.Meta(min_length=1)] = "debian:stable-slim"
    pull: bool = False
    warm_containers: Annotated[int, msgspec.Meta(ge=0, le=64)] = 2
