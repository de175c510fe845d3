"""Serves the screen to the user's browsers: one process per tab, through textual-serve.

Anyone who reaches the port could see runs, so a browser needs a session: it opens a link with a token, which works once
and becomes a cookie. Each use of a link prints the next one. Other sites cannot use the cookie, and a request for the
screen must come from a page of this server (`Origin`). Browsers send cookies to every port of a host, so everything is
served below a folder with a secret name, to which the cookie is limited.
"""

import hmac
import logging
import os
import secrets
import shlex
import socket
from collections.abc import Awaitable, Callable
from ipaddress import ip_address
from pathlib import Path, PurePosixPath
from typing import Any

from aiohttp import web
from textual_serve.server import Server

from launcher.cli.screen import Served
from launcher.core.errors import UserError
from launcher.core.format import counted
from launcher.core.paths import own_command
from tui.browser.tab import WRITE

COOKIE = "ppo_tui_session"
Say = Callable[[str], None]
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
_HEADERS = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
_REMOTE = ("SSH_CONNECTION", "SSH_CLIENT", "SSH_TTY")


class GuardedServer(Server):
    """textual-serve behind a session, without its folder listings and external fonts."""

    def __init__(self, served: Served, listener: socket.socket, say: Say) -> None:
        words = [*([served.run] if served.run else []), *([WRITE] if served.write else [])]
        super().__init__(
            shlex.join(own_command("tui.browser.tab", *words)),
            host=served.host,
            port=listener.getsockname()[1],
            title="ppo-tui",
            templates_path=Path(__file__).parent,
        )
        self._served, self._listener, self._say = served, listener, say
        self._token, self._session = secrets.token_urlsafe(24), secrets.token_urlsafe(32)
        self._home = f"/{secrets.token_urlsafe(24)}/"
        self._open = 0  # tabs

    def initialize_logging(self) -> None:
        """Disables logging: the terminal shows the link, and a tab shows its own errors."""
        logging.getLogger("textual-serve").setLevel(logging.CRITICAL + 1)

    def serve(self, debug: bool = False) -> None:
        """Serves until ctrl+c. The socket listens before the first link is printed."""
        self.debug = debug
        self.initialize_logging()
        web.run_app(self._make_app(), sock=self._listener, print=None)

    async def on_startup(self, app: web.Application) -> None:
        """Prints the link."""
        self._show_link()

    async def _make_app(self) -> web.Application:
        app = web.Application(middlewares=[self._guard])
        app.add_subapp(self._home, await super()._make_app())
        return app

    async def handle_index(self, request: web.Request) -> Any:
        """The page with the terminal. Its addresses repeat the browser's own, because a tunnel may change the port."""
        self.public_url = f"{request.scheme}://{request.host}"
        return await super().handle_index(request)

    async def handle_websocket(self, request: web.Request) -> web.WebSocketResponse:
        """Serves one tab while it is open."""
        self._open += 1
        try:
            return await super().handle_websocket(request)
        finally:
            self._open -= 1

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        response = self._refusal(request) or self._admitted(request) or await handler(request)
        if not response.prepared:
            response.headers.update(_HEADERS)
        return response

    def _refusal(self, request: web.Request) -> web.Response | None:
        """Why this request is refused; None if allowed."""
        host, origin = request.host, request.headers.get("Origin")
        name = host.rsplit(":", 1)[0] if not host.endswith("]") else host
        if _loopback(self.host) and not _loopback(name.strip("[]")):
            return _refused(403, f"'{name}' is not an address of this machine", "open the link as it was printed")
        path = request.path.removeprefix(self._home[:-1])
        socket_asked = path == "/ws"
        if (origin is not None or socket_asked) and origin != f"{request.scheme}://{host}":
            return _refused(403, "the request comes from another site", "open the link in a tab of its own")
        if not self._known(request) and not self._brings_token(request):
            return _refused(403, "the request has no session", "open the newest link that ppo-tui serve printed")
        if self._open >= self._served.tabs and (socket_asked or path == "/"):
            return _refused(
                503, f"open already: {counted(self._open, 'tab')}", "close one, or start ppo-tui serve with --tabs"
            )
        if path.startswith("/static") and not PurePosixPath(path).suffix:
            return _refused(404, "there is no such file", "open the first page")
        return None

    def _admitted(self, request: web.Request) -> web.Response | None:
        """Redirects a link to the page: sets the session, and removes the token from the address."""
        if not self._brings_token(request):
            return None
        self._token = secrets.token_urlsafe(24)
        self._show_link()
        response = web.Response(status=303, headers={"Location": self._home})
        response.set_cookie(COOKIE, self._session, path=self._home, httponly=True, samesite="Strict")
        return response

    def _known(self, request: web.Request) -> bool:
        return _same(request.cookies.get(COOKIE, ""), self._session)

    def _brings_token(self, request: web.Request) -> bool:
        return _same(request.path, f"/open/{self._token}")

    def _show_link(self) -> None:
        host = f"[{self.host}]" if ":" in self.host else self.host
        self._say(f"http://{host}:{self.port}/open/{self._token}")


def serve(served: Served, say: Say) -> int:
    """Serves until ctrl+c. `say` receives each link as a line. Raises UserError for a used port."""
    for name in _REMOTE:  # a tab is not at the other end of ssh
        os.environ.pop(name, None)
    os.environ["TERM"] = "dumb"  # no title and notification besides the tabs' own output
    with _listening(served) as listener:
        GuardedServer(served, listener, say).serve()
    return 0


def _listening(served: Served) -> socket.socket:
    """A socket that listens on the port, or on a free one for port 0. Raises UserError for a used port."""
    listener = socket.socket(socket.AF_INET6 if ":" in served.host else socket.AF_INET)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((served.host, served.port))
        listener.listen()
    except OSError as error:
        listener.close()
        message = f"cannot listen on {served.host} port {served.port}: {error.strerror or error}"
        raise UserError(message, "use --port 0 for a free port") from None
    return listener


def _refused(status: int, message: str, hint: str) -> web.Response:
    return web.Response(status=status, text=f"error: {message}\nhint: {hint}\n")


def _same(given: str, wanted: str) -> bool:
    return hmac.compare_digest(given.encode(), wanted.encode())


def _loopback(name: str) -> bool:
    try:
        return name == "localhost" or ip_address(name).is_loopback
    except ValueError:
        return False
