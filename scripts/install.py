"""Installs the pinned dependencies and this checkout's packages. ``scripts/setup`` runs it with the Python of .venv.

    install.py LOCK [PROJECT...]

uv installs in seconds what takes pip a minute. uv itself is a wheel, pinned and hashed like the rest, which pip
fetches. Where there is no uv for a machine, pip does everything. Needs the standard library only.
"""

import ast
import contextlib
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

UV_LOCK = Path(__file__).with_name("uv.txt")

PIP_TO_UV = {
    "index-url": "UV_DEFAULT_INDEX",
    "extra-index-url": "UV_INDEX",
    "find-links": "UV_FIND_LINKS",
    "no-index": "UV_NO_INDEX",
    "trusted-host": "UV_INSECURE_HOST",
    "cert": "SSL_CERT_FILE",
    "proxy": "ALL_PROXY",
}
"""Settings of pip, which uv does not read, and the variables that tell uv the same."""

BUILD_ALL = """
import os, sys
from hatchling.build import build_editable
for project in sys.argv[2:]:
    os.chdir(project)
    print(build_editable(sys.argv[1]), flush=True)
"""
"""Builds the packages of a checkout in one process; one build each would start twenty of them."""

Show = Callable[[str], None]


def main(lock: str, *projects: str) -> None:
    """Install. Leaves with a sentence when it cannot be done."""
    count = Path(lock).read_text().count("==")
    uv = find_uv()
    if not (uv and install_with_uv(uv, lock, count)):
        install_with_pip(lock, count)
    if projects:
        install_projects(uv, [Path(project).resolve() for project in projects])


# uv ----------------------------------------------------------------------------------------------------------


def find_uv() -> str | None:
    """A uv of the pinned version or a newer one: of the environment, of the path, or fetched now by pip."""
    own = Path(sysconfig.get_path("scripts"), "uv")
    for found in (str(own), shutil.which("uv")):
        if found and is_recent(found):
            return found
    say(f"Fetching uv {pinned_version()}")
    fetched = pip(
        "install", "--quiet", "--only-binary", ":all:", "--no-deps", "--require-hashes", "-r", str(UV_LOCK)
    )
    if run(fetched, quiet=True) and is_recent(str(own)):
        return str(own)
    say("There is no uv for this machine. pip installs instead, which takes a minute or two.")
    return None


def pinned_version() -> str:
    """The version of uv that is pinned."""
    return UV_LOCK.read_text().partition("uv==")[2].split()[0]


def is_recent(uv: str) -> bool:
    """Whether this uv runs, and is not older than the pinned one."""
    try:
        said = subprocess.run(
            [uv, "--version"], capture_output=True, text=True, check=False, timeout=30
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        return False
    found = re.match(r"uv (\d+(?:\.\d+)+)", said)
    return found is not None and numbers(found[1]) >= numbers(pinned_version())


def numbers(version: str) -> tuple[int, ...]:
    """A version as numbers, which can be compared."""
    return tuple(int(part) for part in re.findall(r"\d+", version))


def packages(count: int) -> str:
    """A number of pinned packages, in words."""
    return f"{count} pinned {'package' if count == 1 else 'packages'}"


def install_with_uv(uv: str, lock: str, count: int) -> bool:
    """Install the lock. Returns whether that worked."""
    say(f"Installing {packages(count)}")
    # Python would compile everything anew at each start where it may not keep what it compiled.
    compiled = ["--compile-bytecode"] if os.environ.get("PYTHONDONTWRITEBYTECODE") else []
    done = run(
        [
            uv,
            "pip",
            "install",
            "--python",
            sys.executable,
            "--no-deps",
            "--require-hashes",
            *compiled,
            "-r",
            lock,
        ],
        show=without_list(),
        environ=uv_environ(),
    )
    if not done:
        say("uv could not install them. pip tries, which takes a minute or two.")
    return done


def uv_environ() -> dict[str, str]:
    """The variables for uv: where pip is told of another index, certificate or proxy, uv is told the same."""
    said = subprocess.run(pip("config", "list"), capture_output=True, text=True, check=False).stdout
    return {**translated(said), **os.environ}  # what is set for uv already stays


def translated(pip_config: str) -> dict[str, str]:
    """What ``pip config list`` printed, as variables of uv."""
    found: dict[str, str] = {}
    for key, value in re.findall(r"^(?::env:|global|install)\.([a-z-]+)=(.+)$", pip_config, re.MULTILINE):
        if key in PIP_TO_UV:
            words = str(ast.literal_eval(value)).split()
            found[PIP_TO_UV[key]] = ("," if key == "find-links" else " ").join(words)
    if "UV_INDEX" in found:  # as pip does: the versions of all of them; the hashes say which files are right
        found["UV_INDEX_STRATEGY"] = "unsafe-best-match"
    return found


def without_list() -> Show:
    """Shows what uv says, but not the list of what it installed, nor that its cache lies on another disk."""
    hidden = re.compile(
        r" [+~-] |warning: Failed to hardlink|\s+If the cache|\s+If this is intent|Using Python "
    )

    def show(line: str) -> None:
        if line and not hidden.match(line):
            say(f"  {line.strip()}")

    return show


# pip ---------------------------------------------------------------------------------------------------------


def pip(*arguments: str) -> list[str]:
    """A command of pip for this environment: its own pip, or that of the Python that made it (Debian's python3-pip)."""
    base = getattr(sys, "_base_executable", sys.executable)
    own = [sys.executable, "-m", "pip"] if has_pip() else [base, "-m", "pip", "--python", sys.executable]
    return [*own, "--disable-pip-version-check", *arguments]


def has_pip() -> bool:
    """Whether the environment has a pip of its own."""
    return Path(sysconfig.get_path("purelib"), "pip").is_dir()


def install_with_pip(lock: str, count: int) -> None:
    """Install the lock, and show how far it is."""
    say(f"Installing {packages(count)} with pip")
    # The lock is whole, so nothing has to be resolved; older pips would warn of an extra that justext and lxml
    # write differently.
    wanted = pip("install", "--progress-bar", "off", "--no-deps", "--require-hashes", "-r", lock)
    if not run(wanted, show=counted(count)):
        fail(
            "The dependencies could not be installed.",
            "See the lines above; the network or the disk may be the reason.",
        )


def counted(count: int) -> Show:
    """Shows how many packages pip has come to; all of what it says when something is wrong."""
    seen = 0

    def show(line: str) -> None:
        nonlocal seen
        if line.startswith(("Collecting ", "Requirement already satisfied")):
            seen += 1
            if seen % 10 == 0:
                say(f"  {seen} of {count}")
        elif line.startswith("Installing collected"):
            say("  unpacking them")
        elif line.startswith(("ERROR", "error", "WARNING")):
            say(f"  {line}")

    return show


# The packages of this checkout -------------------------------------------------------------------------------


def install_projects(uv: str | None, projects: Sequence[Path]) -> None:
    """Install the packages of this checkout as links to it."""
    say(f"Linking the {len(projects)} packages of this checkout")
    with tempfile.TemporaryDirectory() as wheels:
        built = run([sys.executable, "-c", BUILD_ALL, wheels, *map(str, projects)])
        found = sorted(str(wheel) for wheel in Path(wheels).glob("*.whl"))
        options = ["--quiet", "--no-deps", "--no-index"]
        if uv:
            command = [uv, "pip", "install", "--python", sys.executable, "--reinstall", *options]
        else:
            command = pip("install", "--force-reinstall", *options)
        if not (built and run([*command, *found], show=say)):
            fail("The packages of this checkout could not be installed.", "See the lines above.")


# Running and saying ------------------------------------------------------------------------------------------


def run(
    command: Sequence[str],
    *,
    show: Show = lambda line: None,
    environ: Mapping[str, str] | None = None,
    quiet: bool = False,
) -> bool:
    """Run a program and show its lines as they come; all of the last ones when it fails. Returns whether it worked."""
    with running(command, environ) as process:
        assert process.stdout is not None
        last: list[str] = []
        for line in process.stdout:
            last = [*last[-20:], line.rstrip()]
            show(line.rstrip())
    if process.returncode and not quiet:
        say("\n".join(last))
    return process.returncode == 0


@contextlib.contextmanager
def running(command: Sequence[str], environ: Mapping[str, str] | None) -> Iterator["subprocess.Popen[str]"]:
    """A program whose both outputs are read as one. It is ended when whoever waits is interrupted."""
    process = subprocess.Popen(
        command,
        env=environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        yield process
        process.wait()
    except BaseException:
        process.terminate()
        process.wait()
        raise


def say(text: str) -> None:
    """Tell the person."""
    print(text, file=sys.stderr, flush=True)


def fail(sentence: str, hint: str) -> None:
    """Leave with a sentence and what to do."""
    say(f"Error: {sentence}\nHint: {hint}")
    sys.exit(1)


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except KeyboardInterrupt:
        say("\nStopped. The next start goes on from here.")
        sys.exit(130)
