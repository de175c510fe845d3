"""The screen in a real browser: a page is drawn, a key works, and whoever has no session sees nothing."""

import signal
import subprocess
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from types import SimpleNamespace
from typing import ClassVar

import httpx
import pytest
from chromium import chromium, needs_browser
from playwright.sync_api import Browser, Page

from launcher.core.paths import own_command

pytestmark = pytest.mark.slow


@pytest.fixture
def serving(make: SimpleNamespace) -> Iterator[subprocess.Popen[str]]:
    """`ppo-tui serve` of a home with one run, for two tabs; its first line is the link."""
    make.run(attempts=[make.recorded(30)])
    command = [*own_command("tui.entry")[:2], "serve", "--port", "0", "--tabs", "2"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        yield process
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0


def link(serving: subprocess.Popen[str]) -> str:
    """The newest link."""
    assert serving.stdout is not None
    return serving.stdout.readline().strip()


def session(url: str) -> tuple[str, httpx.Client]:
    """Opens a link without a browser: the address of the screen, and a client with the session."""
    client = httpx.Client(follow_redirects=False)
    answer = client.get(url)
    assert answer.status_code == 303
    assert "httponly" in answer.headers["set-cookie"].lower() and "SameSite=Strict" in answer.headers["set-cookie"]
    return url.split("/open/")[0] + answer.headers["location"].rstrip("/"), client


UPGRADE = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
}


def test_only_who_opened_the_link_sees_anything(serving: subprocess.Popen[str]) -> None:
    url = link(serving)
    address, client = session(url)
    assert client.get(f"{address}/").status_code == 200

    stranger = httpx.get(f"{address}/")
    assert (stranger.status_code, stranger.text.splitlines()[0]) == (403, "error: the request has no session")
    assert httpx.get(url.replace("/open/", "/open/wrong")).status_code == 403
    assert httpx.get(f"{address}/static/js/textual.js").status_code == 403
    assert httpx.get(url).status_code == 403, "the link works twice"
    newer = link(serving)
    assert newer != url
    session(newer)


def test_another_site_a_listing_and_a_name_of_elsewhere_are_refused(serving: subprocess.Popen[str]) -> None:
    address, client = session(link(serving))
    for origin, status in (("http://evil.example", 403), (None, 403)):
        headers = UPGRADE | ({"Origin": origin} if origin else {})
        assert client.get(f"{address}/ws", headers=headers).status_code == status
    for path in ("/static", "/static/", "/static/js"):
        assert client.get(address + path).status_code == 404
    rebound = client.get(f"{address}/", headers={"Host": "evil.example"})
    assert (rebound.status_code, rebound.text.splitlines()[0]) == (
        403,
        "error: 'evil.example' is not an address of this machine",
    )
    assert client.get(f"{address}/").headers["x-frame-options"] == "DENY"


class Recorder(BaseHTTPRequestHandler):
    """Another program on the same host: it records what a browser sends to it."""

    got: ClassVar[dict[str, str | None]] = {}

    def do_GET(self) -> None:
        self.got[self.path] = self.headers.get("Cookie")
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def recorder() -> Iterator[str]:
    """The address of a `Recorder`."""
    Recorder.got = {}
    with HTTPServer(("127.0.0.1", 0), Recorder) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


OTHER_PATHS = ("/", "/ws", "/open/x", "/static/js/textual.js", "/index.html")


def refused(address: str, cookie: str | None) -> bool:
    """Whether a client that sends this cookie sees nothing, wherever it asks."""
    site = "/".join(address.split("/")[:3])
    headers = {"Cookie": cookie} if cookie else {}
    pages = [f"{base}{path}" for base in (site, address) for path in ("/", "/static/js/textual.js")]
    screens = [httpx.get(f"{base}/ws", headers=headers | UPGRADE | {"Origin": site}) for base in (site, address)]
    return {each.status_code for each in [*(httpx.get(url, headers=headers) for url in pages), *screens]} == {403}


def test_what_a_client_sends_to_another_port_does_not_open_the_screen(
    serving: subprocess.Popen[str], recorder: str
) -> None:
    address, client = session(link(serving))
    for path in OTHER_PATHS:
        client.get(recorder + path)
        assert refused(address, Recorder.got[path]), path
    assert client.get(f"{address}/").status_code == 200


def test_two_servers_side_by_side_keep_their_sessions(serving: subprocess.Popen[str], make: SimpleNamespace) -> None:
    command = [*own_command("tui.entry")[:2], "serve", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as second:
        first_address, client = session(link(serving))
        url = link(second)
        second_address = url.split("/open/")[0] + client.get(url).headers["location"].rstrip("/")
        assert client.get(f"{first_address}/").status_code == client.get(f"{second_address}/").status_code == 200
        assert client.get(f"{first_address}/").status_code == 200
        second.send_signal(signal.SIGINT)
        assert second.wait(20) == 0


@pytest.fixture
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


class Tab:
    """A tab of the browser, and the text that its terminal got."""

    def __init__(self, browser: Browser, url: str) -> None:
        self.got, self.asked = "", list[str]()
        self.context = browser.new_context(viewport={"width": 1200, "height": 700})
        self.context.on("request", lambda request: self.asked.append(request.url))
        self.page = self.open(url)

    def open(self, url: str) -> Page:
        page = self.context.new_page()
        page.on("websocket", lambda socket: socket.on("framereceived", self._received))
        page.goto(url)
        return page

    def _received(self, frame: bytes | str) -> None:
        self.got += frame.decode(errors="replace") if isinstance(frame, bytes) else ""

    def shows(self, text: str) -> None:
        """Waits until the text was drawn."""
        for _ in range(300):
            if text in self.got:
                return
            self.page.wait_for_timeout(100)
        raise AssertionError(f"{text!r} was not drawn, but {self.got[-3000:]!r}")


@needs_browser
def test_a_browser_draws_the_screen_and_takes_keys(serving: subprocess.Popen[str], browser: Browser) -> None:
    tab = Tab(browser, link(serving))
    tab.shows("Start a new run")
    site, _, rest = tab.page.url.rpartition("://")[2].partition("/")
    assert rest and all(url.split("/")[2] == site for url in tab.asked), "the page asks another site"
    before = tab.page.screenshot()
    tab.page.keyboard.press("Enter")
    tab.shows("Policy drift")
    tab.shows("watching")  # no change is allowed
    tab.page.wait_for_timeout(500)
    assert tab.page.screenshot() != before
    tab.got = ""
    tab.page.keyboard.press("x")
    tab.shows("Read-only")
    tab.page.set_viewport_size({"width": 700, "height": 500})
    tab.got = ""
    tab.shows("reward")


@needs_browser
def test_what_a_browser_sends_to_another_port_does_not_open_the_screen(
    serving: subprocess.Popen[str], browser: Browser, recorder: str
) -> None:
    tab = Tab(browser, link(serving))
    tab.shows("Start a new run")
    for path in OTHER_PATHS:
        tab.context.new_page().goto(recorder + path)
        assert refused(tab.page.url.rstrip("/"), Recorder.got[path]), path
    tab.page.reload()
    tab.got = ""
    tab.shows("Start a new run")


@needs_browser
def test_tabs_are_limited_and_end_with_the_page(serving: subprocess.Popen[str], browser: Browser) -> None:
    tab = Tab(browser, link(serving))
    tab.shows("Start a new run")
    tab.got = ""
    second = tab.open(tab.page.url)
    tab.shows("Start a new run")
    third = tab.context.new_page()
    assert third.goto(tab.page.url).status == 503  # type: ignore[union-attr]
    assert "open already: 2 tabs" in third.content()
    second.close()
    for _ in range(100):
        if (answer := third.goto(tab.page.url)) is not None and answer.ok:
            break
        third.wait_for_timeout(100)
    else:
        raise AssertionError("a closed tab counts as open")


def test_a_port_that_is_taken_is_named(serving: subprocess.Popen[str]) -> None:
    port = link(serving).split(":")[2].split("/")[0]
    taken = subprocess.run([*own_command("tui.entry")[:2], "serve", "--port", port], capture_output=True, text=True)
    assert taken.returncode == 2
    assert taken.stderr.splitlines() == [
        f"error: cannot listen on 127.0.0.1 port {port}: Address already in use",
        "hint: use --port 0 for a free port",
    ]
