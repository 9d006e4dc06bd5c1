"""The frames of a page in Chromium: the times between two pictures, and what the page's own thread took for them.

The time between two pictures contains what other programs on the machine take. The processor time of the longest task
of the page's thread does not: a page can show a picture every 50 ms only if none of its tasks needs that long.
"""

import json
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from playwright.async_api import Browser, Page

LONG = 50.0
"""Milliseconds. A longer frame is seen as a halt."""

RESOLUTION = 0.1
"""Milliseconds to which Chromium rounds the times that a page sees. So three pictures at 60 Hz, which are 50 ms, are
measured as 49.9, 50.0 or 50.1."""

TASK = "ThreadControllerImpl::RunTask"
"""The event of a task of a thread. Everything that a page does is within one."""

RECORD = """() => {
  const times = [];
  let last = performance.now();
  const next = (now) => {
    times.push(now - last);
    last = now;
    if (window.frameTimes === times) requestAnimationFrame(next);
  };
  window.frameTimes = times;
  requestAnimationFrame(next);
}"""
"""Records the times between two pictures."""

TAKE = """() => {
  const times = window.frameTimes;
  window.frameTimes = null;
  return times;
}"""

Event = Mapping[str, Any]


@dataclass
class FrameFigures:
    """Milliseconds between pictures, and processor milliseconds of each task of the page's thread."""

    frames: list[float] = field(default_factory=list)
    tasks: list[float] = field(default_factory=list)

    def named(self, name: str) -> dict[str, float]:
        """The figures of the benchmark."""
        return {
            f"{name}_frames": len(self.frames),
            f"{name}_longest_frame_ms": max(self.frames),
            f"{name}_frames_over_{LONG:.0f}_ms": sum(
                round(time, 1) > LONG + RESOLUTION for time in self.frames
            ),
            f"{name}_longest_task_cpu_ms": max(self.tasks),
            f"{name}_cpu_ms_per_frame": sum(self.tasks) / len(self.frames),
        }


@asynccontextmanager
async def recorded(browser: Browser, page: Page) -> AsyncIterator[FrameFigures]:
    """Record the frames of a page. The figures are complete when the block has ended."""
    figures = FrameFigures()
    await browser.start_tracing(page=page, categories=["toplevel"])
    await page.evaluate(RECORD)
    yield figures
    figures.frames += await page.evaluate(TAKE)
    figures.tasks += tasks_of_page(json.loads(await browser.stop_tracing())["traceEvents"])


def tasks_of_page(events: list[Event]) -> list[float]:
    """The processor milliseconds of each task of the thread that draws the page; the busiest, if there are several."""
    threads = {
        (event["pid"], event["tid"])
        for event in events
        if event["name"] == "thread_name" and event["args"]["name"] == "CrRendererMain"
    }
    return max((list(_tasks(events, thread)) for thread in threads), key=sum)


def _tasks(events: list[Event], thread: tuple[int, int]) -> Iterator[float]:
    """The times of the outermost tasks: a task may wait in a loop that runs others."""
    own = [event for event in events if (event["pid"], event["tid"]) == thread and event["name"] == TASK]
    end = 0.0
    for event in sorted(own, key=lambda event: (event["ts"], -event.get("dur", 0))):
        if event["ts"] >= end:
            end = event["ts"] + event.get("dur", 0)
            yield event.get("tdur", 0) / 1000
