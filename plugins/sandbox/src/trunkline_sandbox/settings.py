"""The section ``[plugins.sandbox]``."""

from pathlib import Path
from typing import Annotated, Literal

import msgspec

IN_THE_FILE = msgspec.Meta(extra_json_schema={"readOnly": True})
"""For the form of the settings: it is changed in ``trunkline.toml`` alone."""


class SandboxSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``[plugins.sandbox]``. ``backend`` is the isolation of programs; ``auto`` uses bubblewrap if it works, else
    Docker. If a named backend does not work, the other is not used: programs are refused.

    ``workspace_mb`` is the disk limit of a workspace, in MiB: a program that exceeds it is ended. In a workspace that
    is larger already, a program may add 64 MiB.

    For bubblewrap, ``readable_paths`` names further files and folders of this machine that every program may read, such
    as ``/nix`` or ``/opt/tools``. For Docker, ``image`` is the image of containers; it must contain ``/bin/sh``,
    ``env`` and ``dd``. It is downloaded from a registry only with ``pull``. ``images`` gives the programs of some tools
    another image, by the name of the tool; bubblewrap, which has no images, refuses them. ``warm_containers`` is the
    number of containers that are kept ready for recently used programs.
    """

    backend: Literal["auto", "bubblewrap", "docker"] = "auto"
    workspace_mb: Annotated[int, msgspec.Meta(ge=64)] = 4096
    readable_paths: tuple[Path, ...] = ()
    image: Annotated[str, msgspec.Meta(min_length=1), IN_THE_FILE] = "debian:stable-slim"
    images: Annotated[dict[str, str], IN_THE_FILE] = {}
    pull: Annotated[bool, IN_THE_FILE] = False
    warm_containers: Annotated[int, msgspec.Meta(ge=0, le=64)] = 2
