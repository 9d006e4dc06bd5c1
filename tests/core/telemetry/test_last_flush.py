"""The behaviour of an ending process when its collector does not answer."""

import threading

import pytest
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider

from trunkline.telemetry.setup import ShutdownFlush


class Hanging(SpanProcessor):
    """An exporter that exceeds its timeout."""

    def __init__(self) -> None:
        self.begun = threading.Event()
        self.over = threading.Event()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Wait until the test is over."""
        self.begun.set()
        return self.over.wait(60)


@pytest.mark.anyio
async def test_no_process_waits_for_an_abandoned_flush(caplog: pytest.LogCaptureFixture) -> None:
    """It is still under way in a thread when the process has nothing else to do; Python must not wait for that one."""
    hanging, provider = Hanging(), TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(hanging)
    before = set(threading.enumerate())
    try:
        await ShutdownFlush().run([provider])
        left = [thread for thread in threading.enumerate() if thread not in before and not thread.daemon]
    finally:
        hanging.over.set()
    assert hanging.begun.is_set()
    assert left == []
    assert "the last spans are dropped" in caplog.text
