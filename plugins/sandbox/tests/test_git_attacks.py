"""Programs that try to rewrite pushed history, or to push with a stored password, in any language and through any
git, library or plain file operation. The tests use bubblewrap and Docker."""

import hashlib
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from containers import image_name, needs_busybox

from trunkline.contracts.sandbox.program_request import SandboxLimits
from trunkline.contracts.sandbox.sandbox import Sandbox, SandboxResult
from trunkline_sandbox.bubblewrap.backend import Bubblewrap
from trunkline_sandbox.docker.backend import Docker
from trunkline_sandbox.settings import SandboxSettings

SYSTEM_PYTHON = Path("/usr/bin/python3")
LIBRARIES = Path(
    sys.prefix, "lib", f"python{sys.version_info.major}.{sys.version_info.minor}", "site-packages"
)
ALONE = {"PATH": "/usr/local/bin:/usr/bin:/bin", "GIT_CONFIG_GLOBAL": "/dev/null", "HOME": "/nonexistent"}
SECRET = "token-of-the-owner-0123"
HAS_UPLINK = shutil.which("slirp4netns") is not None and Path("/dev/net/tun").exists()

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed"),
    pytest.mark.skipif(not SYSTEM_PYTHON.exists(), reason="there is no /usr/bin/python3"),
]


@pytest.fixture(
    params=[
        pytest.param(
            "bubblewrap",
            marks=pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed"),
        ),
        pytest.param("docker", marks=needs_busybox),
    ]
)
def sandbox(request: pytest.FixtureRequest, tmp_path: Path) -> Sandbox:
    """Each backend. Docker's image has nothing but busybox, so it is given this machine's programs."""
    if request.param == "bubblewrap":
        return Bubblewrap(SandboxSettings(), tmp_path / "home")
    request.getfixturevalue("image")
    return Docker(SandboxSettings(backend="docker", image=image_name()), tmp_path / "home")


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A repository whose history was rewritten since it was pushed to ``remote``, a bare one beside it."""
    folder = tmp_path / "workspace"
    folder.mkdir()
    git(folder, "init", "-q", "--bare", "-b", "main", "remote")
    git(folder, "init", "-q", "-b", "main", "repo")
    repo = folder / "repo"
    for name, value in (("user.name", "x"), ("user.email", "x@example.org")):
        git(repo, "config", name, value)
    git(repo, "remote", "add", "origin", "../remote")
    for text in ("one", "two"):
        (repo / "file").write_text(text)
        git(repo, "add", ".")
        git(repo, "commit", "-qm", text)
    git(repo, "push", "-q", "origin", "main", "main:feature")
    git(repo, "commit", "-q", "--amend", "-m", "rewritten")
    return folder


def git(folder: Path, *words: str) -> str:
    """Return the output of this machine's git, outside of the sandbox."""
    done = subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True, text=True, env=ALONE)
    return done.stdout.strip()


def content(folder: Path) -> dict[str, str]:
    """All that a folder holds."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
        for path in folder.rglob("*")
    }


async def ran(sandbox: Sandbox, workspace: Path, script: str, **limits: object) -> SandboxResult:
    """Return the result of a script in the repository, with this machine's programs and libgit2 within its reach."""
    given = {"/site": LIBRARIES}
    if sandbox.name == "docker":
        given |= {"/usr": Path("/usr"), "/lib": Path("/usr/lib"), "/lib64": Path("/usr/lib64")}
    return await sandbox.run(
        ("/usr/bin/bash", "-c", script),
        workspace=workspace,
        env={"PYTHONPATH": "/site", "PATH": "/usr/bin:/bin"},
        folder="repo",
        read_only=given,
        limits=SandboxLimits(timeout=60.0, **limits),  # type: ignore[arg-type]
    )


def python(code: str) -> str:
    """A script that has Python run the code."""
    return f"python3 - <<'E'\n{code}\nE"


ATTACKS = {
    "in plain sight": "git push -f origin main",
    "another address": "git push -f /workspace/remote +HEAD:main; git push -f file:///workspace/remote main",
    "deleted": "git push origin :main; git push -d origin feature; git push --mirror origin",
    "an absolute path": "/usr/bin/git push -f origin main; $(git --exec-path)/git-push -f origin main",
    "its parts": "git send-pack --force ../remote main; git-receive-pack ../remote </dev/null",
    "env": "env -i PATH=/usr/bin git push -f origin main; env -S 'git push -f origin main'",
    "put together": "a=gi; b=t; c=pu; $a$b ${c}sh -f origin main; eval \"$(echo Z2l0IHB1c2ggLWY= | base64 -d)\"",
    "a copy": "cp /usr/bin/git /tmp/x && exec -a git /tmp/x push -f origin main",
    "a link": "ln -s /usr/bin/git /tmp/git; /tmp/git push -f origin main; ln -s ../remote r; git push -f r main",
    "a file": "printf 'git push -f origin main' > x; sh x; . ./x",
    "busybox": "busybox sh -c 'git push -f origin main; echo x > ../remote/refs/heads/main; rm -rf ../remote'",
    "Python": python("import subprocess\nsubprocess.run(['git', 'push', '-f', 'origin', 'main'])"),
    "Perl": "perl -e 'system(\"git\", \"push\", \"-f\", \"origin\", \"main\")'",
    "an alias": "git config alias.x '!git push -f origin main'; git x",
    "a hook": "cd .git/hooks; printf '#!/bin/sh\\ngit push -f origin main' > post-commit; chmod +x *; cd ../..; "
    "git commit --allow-empty -m x",
    "settings": "git config remote.origin.mirror true; git config receive.denyNonFastForwards false; git push",
    "its own settings": "git -C ../remote config core.bare false; echo '[x]' >> ../remote/config",
    "in the place": "cd ../remote; git update-ref refs/heads/main HEAD~1; git symbolic-ref HEAD refs/heads/x; "
    "git branch -D feature; git gc --prune=now",
    "GIT_DIR": "GIT_DIR=../remote git update-ref -d refs/heads/main; GIT_DIR=../remote git fetch ../repo +main:main",
    "a worktree of it": "git --git-dir=../remote worktree add --force /tmp/x main; mkdir ../remote/worktrees",
    "by hand": "git rev-parse HEAD > ../remote/refs/heads/main; rm ../remote/refs/heads/feature",
    "moved": "mv ../remote ../old; git init -q --bare ../remote; rm -rf ../remote; git init -q --bare ../remote",
    "linked": "ln ../remote/refs/heads/main x && git rev-parse HEAD > x; chmod -R 777 ../remote; chown -R 0 ../remote",
    "libgit2, the branch": python(
        "import pygit2\ntheirs = pygit2.Repository('../remote')\n"
        "theirs.references.create('refs/heads/main', theirs.revparse_single('main~1').id, force=True)"
    ),
    "libgit2, a push": python(
        "import pygit2\npygit2.Repository('.').remotes['origin'].push(['+refs/heads/main:refs/heads/main'])"
    ),
    "libgit2, all gone": python(
        "import pygit2\npygit2.Repository('../remote').references.delete('refs/heads/main')"
    ),
    "mounts": python(
        "import ctypes\nlibc = ctypes.CDLL(None)\nat = b'/workspace/remote'\nlibc.umount2(at, 2)\n"
        "libc.mount(None, at, None, 32 | 4096, None)\nlibc.unshare(0x10020000)\nlibc.umount2(at, 2)\n"
        "open('/workspace/remote/HEAD', 'w')"
    ),
}  # fmt: skip
"""What a program could try, by name. Each says so on standard error when it fails, which is no matter."""


async def test_MN_T6_no_program_rewrites_pushed_history(sandbox: Sandbox, workspace: Path) -> None:
    """No program changes a single byte of it."""
    before = content(workspace / "remote")
    for name, script in ATTACKS.items():
        await ran(sandbox, workspace, script)
        assert content(workspace / "remote") == before, name
    git(workspace / "remote", "fsck", "--strict")


async def test_the_attacks_succeed_without_the_sandbox(workspace: Path, tmp_path: Path) -> None:
    """Each of the programs that name a branch changes it where nothing holds it, so the test above tests something."""
    if shutil.which("bwrap") is None:
        pytest.skip("bubblewrap is not installed")
    sandbox, before = Bubblewrap(SandboxSettings(), tmp_path / "home"), content(workspace / "remote")
    harmless = []
    for name, script in ATTACKS.items():
        shutil.copytree(workspace, tmp_path / "copy" / name)
        await ran(sandbox, tmp_path / "copy" / name, script, repository="remote")
        remote = tmp_path / "copy" / name / "remote"
        if remote.exists() and content(remote) == before:
            harmless.append(name)
    assert harmless == []


async def test_everyday_git_commands_work(sandbox: Sandbox, workspace: Path) -> None:
    """Commands that do not change pushed history work: commits on every branch, new branches, fetches, clones, new
    bare repositories, and pushes into those that the program itself has made."""
    script = """
        set -e
        git status --short; echo three > file; git add .; git commit -qm three; git commit -q --amend -m again
        git checkout -qb side; git fetch -q origin; git merge -q -X ours origin/main -m x >/dev/null
        git checkout -qb tracked origin/feature; git config user.name y; git remote add other ../other
        git clone -q ../remote /workspace/copy; git -C /workspace/copy log --oneline | wc -l
        git init -q --bare ../other; git push -q other side; git push -qf other main:side; git stash list
        git log --format=%s main | head -1
    """
    reported = await ran(sandbox, workspace, script)
    assert (reported.exit_code, reported.stdout) == (0, b"2\nagain\n"), reported.stderr


class Listening(BaseHTTPRequestHandler):
    """A git server that requires a password, and records the credentials that it is sent."""

    reported: list[str]

    def do_GET(self) -> None:
        """Refuse."""
        self.reported.append(self.headers.get("Authorization", ""))
        self.send_response(401)
        self.send_header("WWW-Authenticate", 'Basic realm="git"')
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def server() -> Iterator[tuple[str, list[str]]]:
    """Run such a server at an address that is not loopback, with the credentials that it was sent."""
    with closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as probe, suppress(OSError):
        probe.connect(("192.0.2.1", 9))
        host = str(probe.getsockname()[0])
    if host.startswith("127."):
        pytest.skip("this machine has no address but loopback")
    reported: list[str] = []
    listening = ThreadingHTTPServer((host, 0), type("Here", (Listening,), {"reported": reported}))
    thread = threading.Thread(target=listening.serve_forever)
    thread.start()
    try:
        yield f"{host}:{listening.server_port}", reported
    finally:
        listening.shutdown()
        thread.join()
        listening.server_close()


KEPT: dict[str, Callable[[str], list[tuple[str, str]]]] = {
    "in the address": lambda host: [("remote.origin.url", f"http://me:{SECRET}@{host}/x.git")],
    "in the address to push to": lambda host: [
        ("remote.origin.url", f"http://{host}/x.git"),
        ("remote.origin.pushurl", f"http://{SECRET}@{host}/x.git"),
    ],
    "in a header": lambda host: [
        ("remote.origin.url", f"http://{host}/x.git"),
        (f"http.http://{host}/.extraheader", f"Authorization: Bearer {SECRET}"),
    ],
    "in a helper": lambda host: [
        ("remote.origin.url", f"http://{host}/x.git"),
        ("credential.helper", f"!f() {{ echo username=me; echo password={SECRET}; }}; f"),
    ],
}
"""Where people leave passwords in the settings of a repository."""

STEALING = """
git push -f origin main; git push -f http://HOST/x.git main; git config -l --show-origin; cat .git/config
python3 -c "import pygit2; r = pygit2.Repository('.'); print(*r.config); r.remotes['origin'].push(['+refs/heads/main'])"
printf 'protocol=http\\nhost=HOST\\n\\n' | git credential fill; ssh-add -l; cat ~/.netrc /etc/gitconfig
mv .git/config kept; cp -r .git /tmp/copy; cat kept /tmp/copy/config; mv .git/HEAD x; cat .git/config; mv x .git/HEAD
env; cat /proc/*/environ | tr '\\0' '\\n'; grep -ra token-of /workspace /tmp /etc 2>/dev/null
"""


async def test_a_password_in_a_repository_pushes_nothing(sandbox: Sandbox, workspace: Path) -> None:
    """With the network at hand: no server is sent it and no program sees it, also one that comes after others have
    tampered with the repository. In the open it is sent."""
    if sandbox.name == "bubblewrap" and not HAS_UPLINK:
        pytest.skip("slirp4netns is not installed, or this machine has no /dev/net/tun")
    repo = workspace / "repo"
    with server() as (host, reported):
        for name, made in KEPT.items():
            usual = (repo / ".git/config").read_text()
            for setting, value in made(host):
                git(repo, "config", setting, value)
            with suppress(subprocess.CalledProcessError):
                git(repo, "push", "-f", "origin", "main")
            assert any(reported), name
            reported.clear()
            for _ in range(2):
                seen = await ran(sandbox, workspace, STEALING.replace("HOST", host), network=True)
                assert SECRET.encode() not in seen.stdout + seen.stderr, name
            assert reported and not any(reported), name
            reported.clear()
            (repo / ".git/config").write_text(usual)
