"""The errors of the bus.

BusError
├── ConnectionFailed      no server at the address, or it refused us
├── ServerTooOld          the server lacks a feature Trunkline stands on
├── SubjectError          a key or a subject does not fit its template
├── DecodeError           bytes are not an envelope of the expected payload
├── CallError             a request did not bring a reply
│   ├── NoResponders      nobody listens on the subject
│   ├── CallTimeout       somebody may have heard it, but no reply came in time
│   └── RemoteFault       the service answered with a fault
├── StreamError           JetStream did not do what was asked
│   ├── SequenceConflict  compare-and-set lost: somebody else wrote first
│   ├── StreamUnavailable the stream is missing, or did not answer in time
│   └── StorageFull       no room left on disk or within the limits
├── TopologyConflict      an existing stream or consumer cannot be changed into the wanted one
└── ServerStartError      the embedded server could not be started

Refusal                   raised *by a handler*, becomes a RemoteFault at the caller
"""


class BusError(Exception):
    """Base of everything the bus raises. The text says what happened, where, and what to do."""


class ConnectionFailed(BusError):
    """The server cannot be reached or refused the connection.

    ``denied``: it is there and turned us away, so waiting does not help.
    """

    def __init__(self, text: str, *, denied: bool = False) -> None:
        super().__init__(text)
        self.denied = denied


class ServerTooOld(BusError):
    """The server's version is below the one Trunkline needs."""


class SubjectError(BusError, ValueError):
    """A template, a key or a subject is malformed."""


class DecodeError(BusError):
    """Bytes that are not an envelope of the expected payload.

    ``reason`` is ``"garbage"`` (not JSON), ``"unknown_type"`` (an unknown payload tag), ``"invalid"`` (fields
    of the wrong type), ``"claim_missing"`` (the claimed object is gone) or ``"object_broken"`` (a
    piece of one is).
    """

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason
        self.detail = detail


class CallError(BusError):
    """A request did not bring a reply."""


class NoResponders(CallError):
    """Nobody listens on the subject, so nobody received the request."""


class CallTimeout(CallError):
    """No reply came in time. Whether the request was handled is unknown."""


class RemoteFault(CallError):
    """The service answered with a fault: a ``code`` for programs, a ``message`` for people."""

    def __init__(self, code: str, message: str, detail: str = "") -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message
        self.detail = detail


class StreamError(BusError):
    """JetStream refused or failed. ``code`` is the JetStream API error code, 0 when there is none."""

    def __init__(self, message: str, code: int = 0) -> None:
        super().__init__(message)
        self.code = code


class SequenceConflict(StreamError):
    """The expected last sequence is not the last one. ``actual`` is the last one when the server said so."""

    def __init__(self, message: str, code: int = 0, actual: int | None = None) -> None:
        super().__init__(message, code)
        self.actual = actual


class StreamUnavailable(StreamError):
    """The stream does not exist or did not answer in time."""


class StorageFull(StreamError):
    """The message was not stored: the disk or the stream's limit is full."""


class TopologyConflict(BusError):
    """An existing stream or consumer differs in a setting the server will not change."""

    def __init__(self, message: str, setting: str = "") -> None:
        super().__init__(message)
        self.setting = setting


class ServerStartError(BusError):
    """The embedded server did not start. The text says why and what to do."""


class Refusal(Exception):
    """Raised by a service handler to refuse a request.

    The caller gets ``RemoteFault`` with exactly this code and this sentence; nothing is logged as a failure.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message
