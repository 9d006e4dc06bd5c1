"""The errors of the bus.

BusError
├── ConnectionFailed      no server at the address, or a refused login
├── ServerTooOld          the server lacks a feature that Trunkline needs
├── SubjectError          a key or a subject does not match its template
├── DecodeError           the bytes are not an envelope of the expected payload
├── CallError             a request got no reply
│   ├── NoResponders      no service listens on the subject
│   ├── CallTimeout       a service may have received the request, but no reply came in time
│   └── RemoteFault       the service answered with a fault
├── StreamError           JetStream refused a request or failed
│   ├── SequenceConflict  compare-and-set failed: another client wrote first
│   ├── StreamUnavailable the stream is missing, or did not answer in time
│   └── StorageFull       the disk or the limit of the stream is full
├── TopologyConflict      an existing stream or consumer cannot be changed to the requested settings
└── ServerStartError      the embedded server could not be started

Refusal                   raised *by a handler*; the caller gets a RemoteFault
"""


class BusError(Exception):
    """The base class of all errors of the bus. The text says what happened, where, and what to do."""


class ConnectionFailed(BusError):
    """The server cannot be reached or refused the connection.

    ``denied`` is True if the server was reached and refused the login; then waiting does not help.
    """

    def __init__(self, text: str, *, denied: bool = False) -> None:
        super().__init__(text)
        self.denied = denied


class ServerTooOld(BusError):
    """The server's version is below the version that Trunkline needs."""


class SubjectError(BusError, ValueError):
    """A template, a key or a subject is malformed."""


class DecodeError(BusError):
    """The bytes are not an envelope of the expected payload.

    ``reason`` is ``"garbage"`` (not JSON), ``"unknown_type"`` (an unknown payload tag), ``"invalid"`` (fields of the
    wrong type), ``"claim_missing"`` (the claimed object is deleted) or ``"object_broken"`` (a piece of an object is
    missing).
    """

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason
        self.detail = detail


class CallError(BusError):
    """A request got no reply."""


class NoResponders(CallError):
    """No service listens on the subject, so the request was not delivered."""


class CallTimeout(CallError):
    """No reply arrived in time. It is unknown whether the request was handled."""


class RemoteFault(CallError):
    """The service answered with a fault: ``code`` is for programs, ``message`` for people."""

    def __init__(self, code: str, message: str, detail: str = "") -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message
        self.detail = detail


class StreamError(BusError):
    """JetStream refused a request or failed. ``code`` is the JetStream API error code; 0 if there is none."""

    def __init__(self, message: str, code: int = 0) -> None:
        super().__init__(message)
        self.code = code


class SequenceConflict(StreamError):
    """The expected last sequence does not match. ``actual`` is the last sequence, if the server reported it."""

    def __init__(self, message: str, code: int = 0, actual: int | None = None) -> None:
        super().__init__(message, code)
        self.actual = actual


class StreamUnavailable(StreamError):
    """The stream does not exist or did not answer in time."""


class StorageFull(StreamError):
    """The message was not stored: the disk or the stream's limit is full."""


class TopologyConflict(BusError):
    """An existing stream or consumer differs in a setting that the server does not change."""

    def __init__(self, message: str, setting: str = "") -> None:
        super().__init__(message)
        self.setting = setting


class ServerStartError(BusError):
    """The embedded server did not start. The text says why and what to do."""


class Refusal(Exception):
    """Raised by a service handler to refuse a request.

    The caller gets a ``RemoteFault`` with this code and message. The service does not log a refusal as a failure.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message
