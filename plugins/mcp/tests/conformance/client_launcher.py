"""The program that the suite starts for each scenario: passes the address and the environment to ``client.py``,
which stays."""

import json
import os
import socket
import sys

with socket.socket(socket.AF_UNIX) as line:
    line.connect(sys.argv[1])
    environ = {name: value for name, value in os.environ.items() if name.startswith("MCP_")}
    line.sendall(json.dumps({"url": sys.argv[-1], "environ": environ}).encode())
    said = line.recv(10_000).decode()
sys.exit(None if said == "ok" else said or "it ended without a word")
