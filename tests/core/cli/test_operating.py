"""The commands of people who operate a platform, on a home of their own with nothing running."""

import json
import subprocess
from collections.abc import Callable

Run = Callable[..., "subprocess.CompletedProcess[str]"]


def test_dead_letters_that_are_not_there(trunkline: Run) -> None:
    """An empty list is a sentence, JSON is an empty list, an unknown id an error, no id at all wrong usage."""
    assert trunkline("dead", "list").stdout == "There are no dead letters.\n"
    assert json.loads(trunkline("dead", "list", "--json").stdout) == []
    none = trunkline("dead", "show", "7")
    assert none.returncode == 1 and "There is no dead letter 7." in none.stderr
    assert trunkline("dead", "retry").returncode == 2
    assert trunkline("dead", "retry", "7", "--all").returncode == 2
    assert json.loads(trunkline("dead", "retry", "--all", "--json").stdout) == []
    assert json.loads(trunkline("dead", "clear", "--all", "--yes", "--json").stdout) == {"cleared": []}
