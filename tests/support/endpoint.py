"""An endpoint with OpenAI's interface on loopback, for tests of the assistant."""

import json
import socket
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress

Reply = Sequence["bytes | Callable[[], object] | None"]
"""Pieces that an endpoint writes; None: waits for the client to leave; a function is called."""


class Endpoint:
    """An HTTP server on loopback that keeps all received bytes, and gives each request the next reply."""

    def __init__(self) -> None:
        self.got, self.replies, self._server = list[bytes](), list[Reply](), socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._server.getsockname()[1]}/v1"
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                caller, _ = self._server.accept()
                with caller, suppress(OSError):
                    self._answer(caller)

    def _answer(self, caller: socket.socket) -> None:
        data, size = b"", 0
        while b"\r\n\r\n" not in data or len(data.partition(b"\r\n\r\n")[2]) < size:
            if not (more := caller.recv(1 << 16)):
                return
            data += more
            head = data.lower().partition(b"content-length: ")[2]
            size = int(head.partition(b"\r\n")[0] or 0)
        self.got.append(data)
        for piece in self.replies[min(len(self.got), len(self.replies)) - 1]:
            if callable(piece):
                piece()
            elif piece is None:
                caller.recv(1)
            else:
                caller.sendall(piece)

    def close(self) -> None:
        with suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()


def stream(*texts: str) -> list[bytes | None]:
    """A reply with one chunk per text, in vLLM's streaming form."""
    chunks = [json.dumps({"choices": [{"index": 0, "delta": {"content": text}}]}) for text in texts]
    first = json.dumps({"choices": [{"delta": {"role": "assistant", "content": ""}}]})
    events = [
        first,
        *chunks,
        json.dumps({"choices": [{"delta": {}, "finish_reason": "stop"}]}),
        '{"choices": []}',
        "[DONE]",
    ]
    return [OK, *(f"data: {event}\n\n".encode() for event in events)]


OK = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"


def status(code: int, body: str = "", head: str = "") -> list[bytes | None]:
    return [f"HTTP/1.1 {code} X\r\n{head}Connection: close\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()]
