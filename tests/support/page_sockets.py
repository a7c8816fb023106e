"""Websockets of the page without a browser."""

import re
import socket

from processes import LIMIT


def token_in(text):
    """Return the token of the future session of a page."""
    (found,) = re.findall(r'"token":"([^"]+)"', text)
    return found


def texts(ask):
    """Return the first text of each session."""
    roots = [one.document.roots[0] for one in ask.page._tornado.get_sessions("/")]
    return [getattr(root, "text", "") for root in roots]


def opened(ask, token, cookie=""):
    """Ask for a websocket; return its connection, status, and whether a session acknowledged."""
    lines = [
        "GET /ws HTTP/1.1", "Host: 127.0.0.1", "Upgrade: websocket", "Connection: Upgrade",
        "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
        f"Sec-WebSocket-Protocol: bokeh, {token}", f"Cookie: {cookie}", "", "",
    ]  # fmt: skip
    client = socket.create_connection(("127.0.0.1", ask.page.port), timeout=LIMIT)
    client.sendall("\r\n".join(lines).encode())
    found = b""
    while b"ACK" not in found and (more := client.recv(4096)):
        found += more
        if found.startswith((b"HTTP/1.1 4", b"HTTP/1.1 5")):
            break
    return client, int(found.split()[1]), b"ACK" in found


def socket_of(ask, token, cookie=""):
    """Open the websocket of a page, and close it; return what `opened` tells."""
    client, status, is_acknowledged = opened(ask, token, cookie)
    client.close()
    return status, is_acknowledged
