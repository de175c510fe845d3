"""The screen in a real browser: a page is drawn, a key works, and whoever has no session sees nothing."""

import contextlib
import signal
import subprocess
from functools import partial
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import ClassVar

import httpx
import pytest
from chromium import chromium, needs_browser
from waiting import PATIENCE

from launcher.core.paths import own_command

pytestmark = pytest.mark.slow
SERVE = [*own_command("tui.entry")[:2], "serve", "--port"]
get = partial(httpx.get, timeout=PATIENCE)


@contextlib.contextmanager
def served(*options):
    """`ppo-tui serve`, which ends well; its first line is the link."""
    with subprocess.Popen(
        [*SERVE, "0", *options], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        try:
            yield process
        finally:
            process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE) == 0


@pytest.fixture
def serving(make):
    """A home with one run, for two tabs."""
    make.run(attempts=[make.recorded(30)])
    with served("--tabs", "2") as process:
        yield process


def link(serving):
    """The newest link."""
    return serving.stdout.readline().strip()


def session(url):
    """Opens a link without a browser: the address of the screen, and a client with the session."""
    client = httpx.Client(follow_redirects=False, timeout=PATIENCE)
    answer = client.get(url)
    assert answer.status_code == 303
    assert "httponly" in answer.headers["set-cookie"].lower() and "SameSite=Strict" in answer.headers["set-cookie"]
    return url.split("/open/")[0] + answer.headers["location"].rstrip("/"), client


def said(answer):
    return answer.status_code, answer.text.splitlines()[0]


UPGRADE = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
}


class Recorder(BaseHTTPRequestHandler):
    """Another program on the same host: it records what a browser sends to it."""

    got: ClassVar[dict[str, str | None]] = {}

    def do_GET(self):
        self.got[self.path] = self.headers.get("Cookie")
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_): ...


@pytest.fixture
def recorder():
    """The address of a `Recorder`."""
    Recorder.got = {}
    with HTTPServer(("127.0.0.1", 0), Recorder) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


OTHER_PATHS = ("/", "/ws", "/open/x", "/static/js/textual.js", "/index.html")


def refused(address, cookie):
    """Whether a client that sends this cookie sees nothing, wherever it asks."""
    site = "/".join(address.split("/")[:3])
    headers = {"Cookie": cookie} if cookie else {}
    pages = [f"{base}{path}" for base in (site, address) for path in ("/", "/static/js/textual.js")]
    screens = [get(f"{base}/ws", headers=headers | UPGRADE | {"Origin": site}) for base in (site, address)]
    return {each.status_code for each in [*(get(url, headers=headers) for url in pages), *screens]} == {403}


@pytest.mark.nightly("tui/browser/")
def test_only_who_opened_the_link_sees_anything(serving, recorder):
    url = link(serving)
    address, client = session(url)
    assert client.get(f"{address}/").status_code == 200
    assert client.get(f"{address}/").headers["x-frame-options"] == "DENY"
    assert said(get(f"{address}/")) == (403, "error: the request has no session")
    for strange in (url.replace("/open/", "/open/wrong"), f"{address}/static/js/textual.js", url):
        assert get(strange).status_code == 403, "the link works once"
    for headers in (UPGRADE | {"Origin": "http://evil.example"}, UPGRADE):  # another site
        assert client.get(f"{address}/ws", headers=headers).status_code == 403
    for path in ("/static", "/static/", "/static/js"):  # a listing
        assert client.get(address + path).status_code == 404
    rebound = client.get(f"{address}/", headers={"Host": "evil.example"})  # a name of elsewhere
    assert said(rebound) == (403, "error: 'evil.example' is not an address of this machine")
    for path in OTHER_PATHS:  # what a client sends to another port
        client.get(recorder + path)
        assert refused(address, Recorder.got[path]), path
    newer = link(serving)
    assert newer != url
    session(newer)
    port = url.split(":")[2].split("/")[0]
    taken = subprocess.run([*SERVE, port], capture_output=True, text=True)
    told = (
        f"error: cannot listen on 127.0.0.1 port {port}: Address already in use\nhint: use --port 0 for a free port\n"
    )
    assert (taken.returncode, taken.stderr) == (2, told)
    wrong = subprocess.run([*SERVE, port, "--address", "256.0.0.1"], capture_output=True, text=True)
    assert wrong.returncode == 2 and f"256.0.0.1 port {port}: " in wrong.stderr and "(" not in wrong.stderr
    with served() as second:
        url = link(second)
        beside = url.split("/open/")[0] + client.get(url).headers["location"].rstrip("/")
        for each in (address, beside, address):  # side by side they keep their sessions
            assert client.get(f"{each}/").status_code == 200


@pytest.fixture
def browser():
    with chromium() as found:
        yield found


class Tab:
    """A tab of the browser, and the text that its terminal got."""

    def __init__(self, browser, url):
        self.got, self.asked = "", []
        self.context = browser.new_context(viewport={"width": 1200, "height": 700})
        self.context.on("request", lambda request: self.asked.append(request.url))
        self.page = self.open(url)

    def open(self, url):
        page = self.context.new_page()
        page.on("websocket", lambda socket: socket.on("framereceived", self._received))
        page.goto(url)
        return page

    def _received(self, frame):
        self.got += frame.decode(errors="replace") if isinstance(frame, bytes) else ""

    def shows(self, text):
        """Waits until the text was drawn."""
        for _ in range(300):
            if text in self.got:
                return
            self.page.wait_for_timeout(100)
        raise AssertionError(f"{text!r} was not drawn, but {self.got[-3000:]!r}")


@needs_browser
def test_a_browser_draws_the_screen_takes_keys_and_keeps_its_session(serving, browser, recorder):
    tab = Tab(browser, link(serving))
    tab.shows("Start a new run")
    site, _, rest = tab.page.url.rpartition("://")[2].partition("/")
    assert rest and all(url.split("/")[2] == site for url in tab.asked), "the page asks another site"
    for path in OTHER_PATHS:
        (other := tab.context.new_page()).goto(recorder + path)
        assert refused(tab.page.url.rstrip("/"), Recorder.got[path]), path
        other.close()
    tab.got = ""
    tab.page.reload()
    tab.shows("Start a new run")
    before = tab.page.screenshot()
    tab.page.keyboard.press("Enter")
    tab.shows("Policy drift")
    tab.shows("watching")  # no change is allowed
    tab.page.wait_for_timeout(500)
    assert tab.page.screenshot() != before
    tab.got = ""
    tab.page.keyboard.press("x")
    tab.shows("Read-only")
    tab.got = ""
    tab.page.set_viewport_size({"width": 700, "height": 500})
    tab.shows("reward")


@pytest.mark.nightly("tui/browser/")
@needs_browser
def test_tabs_are_limited_and_end_with_the_page(serving, browser):
    tab = Tab(browser, link(serving))
    tab.shows("Start a new run")
    tab.got = ""
    second = tab.open(tab.page.url)
    tab.shows("Start a new run")
    third = tab.context.new_page()
    assert third.goto(tab.page.url).status == 503 and "open already: 2 tabs" in third.content()
    second.close()
    for _ in range(100):
        if (answer := third.goto(tab.page.url)) is not None and answer.ok:
            return
        third.wait_for_timeout(100)
    raise AssertionError("a closed tab counts as open")
