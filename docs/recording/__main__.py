"""``PYTHONPATH=.. python -m recording FILE``, in the folder ``docs``: play the story and write the picture."""

import sys
from pathlib import Path

from recording.scenario import COLUMNS, ROWS, record_scenario
from recording.svg_animation import render_svg

TITLE = (
    "A terminal. An agent answers from memory, asks before it writes a file, is killed in the middle of an answer, "
    "continues after a restart, and the history of its memory names the author of each line."
)


def main() -> int:
    """Write the picture, and say how long it lasts."""
    target = Path(sys.argv[1])
    frames = record_scenario()
    target.write_text(render_svg(frames, COLUMNS, ROWS, title=TITLE))
    seconds = sum(frame.seconds for frame in frames)
    print(f"{target}: {len(frames)} frames, {seconds:.0f} s, {target.stat().st_size // 1024} kB")  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main())
