"""Programs that try what no sandbox allows, and files that none may read."""

from trunkline.testing.sandbox_fixture import SECRET

PROTECTED = (".env", "auth.json", "deep/down/id_rsa", ".ssh/config", "my.env", ".aws/credentials", ".ENV")

WITH_PASSWORD = (
    f'[remote "origin"]\n\turl = https://{SECRET}@example.org/x',
    f'[remote "origin"]\n\turl = https://name:{SECRET}@example.org/x',
    f'[remote "origin"]\n\tpushurl = "ftp://name:{SECRET}@example.org/x"',
    f'[remote "origin"] url = https://{SECRET}@example.org/x',
    f'[remote "origin"]\n\tproxy = http://name:{SECRET}@example.org:3128',
    f'[submodule "x"]\n\tURL=HTTPS://{SECRET}@EXAMPLE.org/x',
    f'[url "https://name:{SECRET}@example.org/"]\n\tinsteadOf = https://example.org/',
    f'[http "https://example.org/"]\n\textraheader = AUTHORIZATION: basic {SECRET}',
    f'[credential]\n\thelper = "!f() {{ echo password={SECRET}; }}; f"',
)
"""Settings of git that hold a password, a token or a header for a server."""

KERNEL_CALLS = """
import ctypes, socket
libc = ctypes.CDLL(None, use_errno=True)
for name, *numbers in (("unshare", 272, 0x10000000), ("mount", 165, 0, 0, 0, 0, 0), ("ptrace", 101, 16, 1, 0, 0),
                       ("keyctl", 250, 0, -3), ("bpf", 321, 0, 0, 0), ("perf_event_open", 298, 0, 0, -1, -1, 0),
                       ("io_uring_setup", 425, 1, 0), ("setns", 308, 0, 0), ("userfaultfd", 323, 0),
                       ("clone", 56, 0x10000000 | 17, 0, 0, 0, 0), ("open_by_handle_at", 304, 0, 0, 0)):
    if libc.syscall(*numbers) != -1:
        print("allowed:", name)
for family in (40, 38, 17):
    try:
        socket.socket(family, socket.SOCK_RAW if family == 17 else socket.SOCK_STREAM)
        print("allowed: socket", family)
    except OSError:
        pass
print("done")
"""
"""What no program may do, by the numbers of x86_64; it prints what it may."""
