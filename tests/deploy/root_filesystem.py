"""A base image made from this machine, for systems without access to a registry: Python, a shell, and the libraries
that they need.

It replaces ``python:3.12-slim`` and contains the sandbox for agents' programs. The steps of ``deploy/Dockerfile`` build
everything above it.
"""

import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
from collections.abc import Iterable, Iterator
from pathlib import Path

PROGRAMS = (
    "sh", "cat", "ls", "id", "rm", "mkdir", "install", "chmod", "chown", "env", "touch", "sleep", "useradd",
    "true", "bwrap", "slirp4netns",
)  # fmt: skip
ALSO = (
    "libgcc_s.so.1", "libstdc++.so.6", "libnss_files.so.2", "libnss_dns.so.2", "libresolv.so.2", "libpthread.so.0",
    "libdl.so.2", "librt.so.1", "libm.so.6", "libutil.so.1",
)  # fmt: skip
"""Libraries that wheels and name resolution load without saying so in this Python's own files."""

ACCOUNTS = {
    "passwd": "root:x:0:0:root:/root:/bin/sh\n", "group": "root:x:0:\n", "shadow": "root:*:19000::::::\n",
    "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n", "login.defs": "", "shells": "/bin/sh\n",
}  # fmt: skip
CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
LEFT_OUT = re.compile(r"/(__pycache__|test|tests|idlelib|tkinter|turtledemo|config-[^/]+|lib2to3)(/|$)")


def why_not() -> str | None:
    """Why no base image can be made of this machine; None when it can."""
    if sys.platform != "linux":
        return "a base image can be made of a Linux machine only"
    missing = [name for name in (*PROGRAMS, "ldd") if shutil.which(name) is None]
    if missing:
        return f"no base image can be made here: {', '.join(missing)} is missing"
    if not (_stdlib() / "site-packages/pip").is_dir():
        return "no base image can be made here: this Python's pip is not in its own folder, as with Debian's packages"
    if not (_stdlib() / "ensurepip").is_dir():
        return "no base image can be made here: this Python comes without ensurepip"
    return None


def write_base(target: Path) -> None:
    """Write the root file system as a tar file."""
    python = Path(sys.base_prefix) / f"bin/python{sys.version_info[0]}.{sys.version_info[1]}"
    programs = [Path(found) for name in PROGRAMS if (found := shutil.which(name))]
    with tarfile.open(target, "w") as tar:
        for program in programs:
            tar.add(program.resolve(), f"usr/bin/{program.name}")
        tar.add(python.resolve(), "usr/local/bin/python")
        _add_tree(tar, _stdlib(), f"usr/local/lib/{_stdlib().name}")
        for package in ("pip", "setuptools"):
            for part in _stdlib().glob(f"site-packages/{package}*"):
                _add_tree(tar, part, f"usr/local/lib/{_stdlib().name}/site-packages/{part.name}")
        extensions = (_stdlib() / "lib-dynload").glob("*.so")
        for library in sorted(_libraries([python.resolve(), *programs, *extensions])):
            tar.add(library.resolve(), _readable(library))
        _add_texts(tar, target.parent)


def _stdlib() -> Path:
    return Path(
        sysconfig.get_path("stdlib", vars={"installed_base": sys.base_prefix, "base": sys.base_prefix})
    )


def _add_tree(tar: tarfile.TarFile, source: Path, name: str) -> None:
    def kept(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
        inside = entry.name.removeprefix(name)
        return None if LEFT_OUT.search(inside) or inside == "/site-packages" else entry

    tar.add(source, name, filter=kept)


def _libraries(files: Iterable[Path]) -> Iterator[Path]:
    """Return the libraries that these need, the dynamic loader included, at their paths."""
    asked = [str(file) for file in files]
    said = subprocess.run(["ldd", *asked], capture_output=True, text=True, check=False).stdout
    found = {Path(path) for path in re.findall(r"(?:=> |^\s+)(/\S+)", said, re.MULTILINE)}
    for name in ALSO:
        found |= {path for place in ("/lib", "/usr/lib") for path in Path(place).glob(f"*/{name}")}
    yield from found


def _readable(library: Path) -> str:
    """Its place in the image. A library that lies with this Python may lie where only root can read."""
    ours = library.is_relative_to(sys.base_prefix) and not library.is_relative_to("/usr/lib")
    return f"usr/lib/{library.name}" if ours else str(library).lstrip("/")


def _add_texts(tar: tarfile.TarFile, folder: Path) -> None:
    for name, text in ACCOUNTS.items():
        draft = folder / "etc-file"
        draft.write_text(text)
        tar.add(draft, f"etc/{name}")
    if CERTIFICATES.exists():
        tar.add(CERTIFICATES.resolve(), str(CERTIFICATES).lstrip("/"))  # libgit2 does not begin without
        link = tarfile.TarInfo("usr/lib/ssl/cert.pem")
        link.type, link.linkname = tarfile.SYMTYPE, str(CERTIFICATES)
        tar.addfile(link)
    for place, mode in (
        ("tmp", 0o1777),
        ("root", 0o700),
        ("home", 0o755),
        ("var/tmp", 0o1777),
        ("usr/sbin", 0o755),
    ):
        entry = tarfile.TarInfo(place)
        entry.type, entry.mode = tarfile.DIRTYPE, mode
        tar.addfile(entry)
    if not any(one.name == "bin" for one in tar.getmembers()):
        link = tarfile.TarInfo("bin")
        link.type, link.linkname = tarfile.SYMTYPE, "usr/bin"
        tar.addfile(link)
