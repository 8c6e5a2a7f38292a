"""Python imports this module at its start: every name but loopback leads to the listener of the variable TRAP, at any port."""

import os
import socket

HOST, PORT = os.environ["TRAP"].rsplit(":", 1)
resolve = socket.getaddrinfo


def getaddrinfo(host, port, *arguments, **options):
    """The addresses of loopback, and the listener's for any other name."""
    name = host.decode() if isinstance(host, bytes) else host
    if name not in (None, "", "localhost", "127.0.0.1", "::1", "0.0.0.0"):
        host, port = HOST, int(PORT)
    return resolve(host, port, *arguments, **options)


socket.getaddrinfo = getaddrinfo
