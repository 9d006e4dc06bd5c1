"""The report of ``trunkline doctor`` about the sandbox."""

from functools import partial

import pytest

from trunkline_sandbox import health


@pytest.mark.anyio
async def test_bubblewrap_checks_are_skipped_with_docker(monkeypatch: pytest.MonkeyPatch) -> None:
    """An owner who chose Docker is not told to install slirp4netns; one who may get bubblewrap is."""
    monkeypatch.setenv("PATH", "/nowhere")
    for check in (partial(health.limits_check, workspace=4096), health.network_check):
        result = await check("docker")
        assert result.status == "ok" and "Docker" in result.summary
    missing = await health.network_check("auto")
    assert missing.status == "warning" and "apt install slirp4netns" in missing.hint
