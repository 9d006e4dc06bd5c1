"""``python -I -S loopback_blocker.py PROCESS``, a program of its own. Goes into the network of a sandbox that has not
begun, and closes the way by which packets for loopback would leave it.

A program that binds a socket to the device of its uplink (SO_BINDTODEVICE, IP_PKTINFO: no rights needed) is not led to
its own loopback: what it sends to 127.0.0.1 goes out, and slirp4netns hands it to what listens on this machine's.
"""

import ctypes
import fcntl
import os
import socket
import struct
import sys

NS_GET_USERNS = 0xB701
NEW_USER, NEW_NETWORK = 0x10000000, 0x40000000
NEW_ROUTE, REQUEST, ACKNOWLEDGE, CREATE = 24, 1, 4, 0x400
MAIN, STATIC, UNREACHABLE = 254, 4, 7
DESTINATION = 1
ERROR = 2

libc = ctypes.CDLL(None, use_errno=True)


def main() -> None:
    """Leaves with 0 when it is closed."""
    network = os.open(f"/proc/{sys.argv[1]}/ns/net", os.O_RDONLY)
    users = fcntl.ioctl(network, NS_GET_USERNS)
    for handle, kind in ((users, NEW_USER), (network, NEW_NETWORK)):
        if libc.setns(handle, kind) != 0:
            raise OSError(ctypes.get_errno(), "the namespace cannot be entered")
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW) as kernel:
        kernel.send(route_request(socket.inet_aton("127.0.0.0"), 8))
        answer = kernel.recv(4096)
    kind, code = struct.unpack_from("=4xH10xi", answer)
    if kind != ERROR or code != 0:
        sys.exit(f"the network route to loopback cannot be blocked: {os.strerror(-code)}")


def route_request(address: bytes, length: int) -> bytes:
    """The request for a route on which nothing is sent (rtnetlink(7))."""
    body = struct.pack("=BBBBBBBBI", socket.AF_INET, length, 0, 0, MAIN, STATIC, 0, UNREACHABLE, 0)
    body += struct.pack("=HH4s", 8, DESTINATION, address)
    return struct.pack("=IHHII", 16 + len(body), NEW_ROUTE, REQUEST | ACKNOWLEDGE | CREATE, 1, 0) + body


if __name__ == "__main__":
    main()
