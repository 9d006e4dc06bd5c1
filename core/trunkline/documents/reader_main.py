"""The process that runs readers. It sets its limits first, then reads one file after the other until the parent closes
the connection.

The process receives open files and opens none itself. On Linux, if the kernel supports it, the process cannot change
files and has no network.
"""

import contextlib
import ctypes
import os
import pickle
import resource
import socket
import sys
import threading
from pathlib import Path
from typing import BinaryIO

from trunkline.contracts.documents.reader import Document, Reader
from trunkline.documents import reader_protocol
from trunkline.documents.landlock import give_up_writing
from trunkline.documents.markdown import normalized
from trunkline.errors import UnreadableDocument

MIB = 1024 * 1024
MOST_TEXT = 16 * MIB
"""The maximum number of characters of a document. More text indicates a decompression bomb or a wrong format."""

_NEWUSER, _NEWNET = 0x10000000, 0x40000000


def main() -> None:
    """Run ``python -m trunkline.documents.reader_main SOCKET LIFE MEMORY SECONDS``. SOCKET and LIFE are file
    descriptors, MEMORY is in MiB, SECONDS is the CPU time for one file.
    """
    handle, life, memory, seconds = (int(word) for word in sys.argv[1:])
    connection = socket.socket(fileno=handle)
    threading.Thread(target=_end_with_parent, args=(life,), daemon=True).start()
    _give_up_network()
    give_up_writing()
    _take_bounds(memory)
    connection.sendall(reader_protocol.READY)
    while (given := reader_protocol.receive_job(connection)) is not None:
        _allow(seconds)
        reader_protocol.send_message(connection, _outcome(*given, memory))


def _outcome(
    job: reader_protocol.ReadJob, handle: int, memory: int
) -> reader_protocol.ReadResult | reader_protocol.ReadFailure:
    try:
        with open(handle, "rb") as file:
            document = _read(job, file)
        return reader_protocol.ReadResult(document, _spent(memory))
    except MemoryError:
        return reader_protocol.ReadFailure(f"it needs more than {memory} MB of memory", True)
    except UnreadableDocument as error:
        return reader_protocol.ReadFailure(error.sentence, _spent(memory))
    except RecursionError:
        return reader_protocol.ReadFailure("it is broken: it is nested too deeply", True)
    except Exception as error:
        said = " ".join(str(error).split())[:200]
        return reader_protocol.ReadFailure(
            f"it is broken ({type(error).__name__}{': ' if said else ''}{said})", _spent(memory)
        )


def _read(job: reader_protocol.ReadJob, file: BinaryIO) -> Document:
    if job.module not in sys.modules and job.module.startswith("_trunkline_file_"):
        from trunkline.plugins.file_plugins import file_loader

        file_loader(Path(job.file))()
    reader: Reader = pickle.loads(job.reader)
    document = normalized(reader.read(file, job.name))
    size = sum(len(section.text) for section in document.sections)
    if size > MOST_TEXT:
        raise UnreadableDocument(f"it holds more than {MOST_TEXT // MIB} million characters")
    if size == 0:
        raise UnreadableDocument("it contains no text")
    return document


def _take_bounds(memory: int) -> None:
    for kind, most in (
        (resource.RLIMIT_DATA, memory * MIB),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_NOFILE, 256),
        (resource.RLIMIT_CORE, 0),
    ):
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(kind, (most, most))


def _allow(seconds: int) -> None:
    """Limit the CPU time to ``seconds`` more. The kernel enforces this limit even if the parent has ended."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    most = int(usage.ru_utime + usage.ru_stime) + 1 + seconds
    resource.setrlimit(resource.RLIMIT_CPU, (most, resource.RLIM_INFINITY))


def _spent(memory: int) -> bool:
    """Report whether the process has used so much memory that the next file should get a new process."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit > memory * MIB / 3


def _give_up_network() -> None:
    if sys.platform == "linux":
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.unshare(_NEWNET) != 0:
            libc.unshare(_NEWUSER | _NEWNET)


def _end_with_parent(life: int) -> None:
    """Exit when the parent ends. The parent holds the other end of a pipe and never writes; the pipe closes when the
    parent ends.
    """
    os.read(life, 1)
    os._exit(1)


if __name__ == "__main__":
    main()
