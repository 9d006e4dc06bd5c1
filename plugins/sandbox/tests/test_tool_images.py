"""CC-F15: the programs of a tool run in the image that the owner gives it, and in no other."""

from dataclasses import replace
from pathlib import Path

import pytest
from containers import image_name, needs_busybox

from trunkline import ToolError
from trunkline.api.sandbox import SandboxResult
from trunkline.contracts.sandbox.program_request import check_program
from trunkline.contracts.sandbox.sandbox import Sandbox
from trunkline_sandbox.bubblewrap.backend import Bubblewrap
from trunkline_sandbox.docker.backend import Docker
from trunkline_sandbox.settings import SandboxSettings

pytestmark = pytest.mark.anyio

MISSING = "trunkline-test-image-that-is-not-there:none"


async def run(sandbox: Sandbox, tool: str) -> SandboxResult:
    request = check_program(("sh", "-c", "echo ran"), workspace=None, env={})
    return await sandbox.run_program(replace(request, tool=tool), b"")


@needs_busybox
@pytest.mark.usefixtures("image")
async def test_a_tool_runs_in_its_image(tmp_path: Path) -> None:
    """The default image is not needed by a tool with another one. An image that is not there is named, with what to do,
    and the tool runs in no other."""
    images = {"special": image_name(), "lost": MISSING}
    settings = SandboxSettings(backend="docker", image=MISSING, images=images, warm_containers=0)
    sandbox = Docker(settings, tmp_path / "home")
    assert (await run(sandbox, "special")).stdout == b"ran\n"
    usual = Docker(replace_image(settings, image_name()), tmp_path / "home")
    assert (await run(usual, "other")).stdout == b"ran\n"
    with pytest.raises(ToolError, match=f"docker pull {MISSING}") as refused:
        await run(usual, "lost")
    assert refused.value.kind == "unavailable"


def replace_image(settings: SandboxSettings, image: str) -> SandboxSettings:
    return SandboxSettings(backend="docker", image=image, images=settings.images, warm_containers=0)


async def test_bubblewrap_refuses_a_tool_with_an_image(tmp_path: Path) -> None:
    """It has no images, so the tool's program does not run outside of its own."""
    sandbox = Bubblewrap(SandboxSettings(images={"special": MISSING}), tmp_path / "home")
    with pytest.raises(ToolError, match=r"plugins\.sandbox\.images") as refused:
        await run(sandbox, "special")
    assert refused.value.kind == "unsupported"
