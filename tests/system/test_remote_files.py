"""Files that are not on this machine: in a store in memory, on web servers of every kind."""

import hashlib
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from pathlib import Path
from threading import Barrier, Event, Thread
from urllib.parse import urlsplit

import pytest

from as2d_cli.batch import inputs
from as2d_cli.batch.inputs import find_inputs
from as2d_cli.batch.outputs import output_folder, plan_outputs
from as2d_cli.batch.request import BatchRequest
from as2d_cli.batch.run import BatchRun
from as2d_cli.domain.errors import RequestError
from as2d_cli.models.registry import load_registry
from as2d_cli.system import remote_files
from as2d_cli.system.addresses import address
from as2d_cli.system.remote_files import (
    copy,
    exists,
    files_in,
    head,
    listed,
    matching,
    put,
    reach,
    size_and_time,
)


@pytest.fixture(autouse=True)
def store():
    import fsspec

    memory = fsspec.filesystem("memory")
    yield memory
    memory.store.clear()


class Web(BaseHTTPRequestHandler):
    """Has one recording, and each of its pages another way to give it, or not to."""

    protocol_version = "HTTP/1.1"
    content = b""
    asked: list[str] = []  # noqa: RUF012 - of the server, which makes one of these per connection
    ending: Event

    def do_GET(self):
        self.asked.append(f"{self.command} {self.path}")
        url = urlsplit(self.path)
        kind = url.path.split("/")[1]
        answer = getattr(self, f"_{kind}", None)
        if answer is None:
            self.send_error(404)
        else:
            answer(url.query)

    def _whole(self, query, length=None):
        self.send_response(200)
        self.send_header("Content-Length", str(len(self.content) if length is None else length))
        self.send_header("Last-Modified", "Sun, 29 Nov 2026 10:00:00 GMT" if query else "long ago")
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(self.content)

    def do_HEAD(self):
        self.do_GET()

    def _ranges(self, query):
        asked = self.headers.get("Range")
        if asked is None:
            self._whole(query)
            return
        first, last = (int(one) for one in asked.removeprefix("bytes=").split("-"))
        part = self.content[first : last + 1]
        self.send_response(206)
        self.send_header("Content-Range", f"bytes {first}-{first + len(part) - 1}/{len(self.content)}")
        self.send_header("Content-Length", str(len(part)))
        self.end_headers()
        self.wfile.write(part)

    def _unmeasured(self, query, *, ends=True):
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        if self.command == "GET":
            for begin in range(0, len(self.content), 10_000):
                part = self.content[begin : begin + 10_000]
                self.wfile.write(f"{len(part):x}\r\n".encode() + part + b"\r\n")
        if self.command == "GET" and ends:
            self.wfile.write(b"0\r\n\r\n")
        self.close_connection = not ends

    def _cut(self, query):
        self._whole(query, len(self.content) + 1)
        self.close_connection = True

    def _torn(self, query):
        self._unmeasured(query, ends=False)

    def _shaky(self, query):
        """Give a file at the third time."""
        times = sum(one.startswith("GET /shaky") for one in self.asked)
        if times == 1:
            self.send_error(503)
        elif times == 2 and self.command == "GET":
            self._cut(query)
        else:
            self._whole(query)

    def _busy(self, query):
        self.send_error(429)

    def _silent(self, query):
        if self.command == "GET":
            self._whole(query, len(self.content) + 1)
        self.ending.wait(60)
        self.close_connection = True

    def _signed(self, query):
        if self.command == "GET" and "X-Amz-Signature=right" in query:
            self._whole(query)
        else:
            self.send_error(403)

    def _moved(self, query):
        self.send_response(302)
        self.send_header("Location", "/whole/b.wav")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _page(self, query):
        self.send_response(200)
        self.send_header("Content-Length", "21")
        self.end_headers()
        self.wfile.write(b"<html>a folder</html>")

    def log_message(self, *arguments):
        pass


@pytest.fixture
def web(sound, monkeypatch):
    """Start a web server with a recording; return its address."""
    Web.content = sound("web.wav").read_bytes()
    Web.asked.clear()
    Web.ending = Event()
    monkeypatch.setattr(remote_files, "_PAUSES_S", (0.01, 0.02))
    server = ThreadingHTTPServer(("127.0.0.1", 0), Web)
    Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    Web.ending.set()
    server.shutdown()
    server.server_close()


def run(*given, **options):
    registry = load_registry()
    request = BatchRequest(find_inputs(given).found, registry.model("speaker"), threads=1, **options)
    return list(BatchRun(request).run())


def test_folders_patterns_and_single_files_are_found_in_order_with_their_place(sound):
    for name in ("b.wav", "a.wav", "below/c.wav", ".hidden.wav", "notes.md"):
        put(f"memory://talks/{name}", sound("a.wav").read_bytes() if name.endswith("wav") else b"text")
    found = find_inputs(["memory://talks"])
    assert [(address(one.path), str(one.subfolder)) for one in found.found] == [
        ("memory://talks/a.wav", "."),
        ("memory://talks/b.wav", "."),
        ("memory://talks/below/c.wav", "below"),
    ]
    assert found.notes == ("memory://talks: ignored 1 file that is no audio",)
    for pattern in ("*.wav", "?.wav", "[ab].*"):
        assert [one.path.name for one in find_inputs([f"memory://talks/{pattern}"]).found] == [
            "a.wav",
            "b.wav",
        ]
    put("memory://talks/[ab]*.wav", b"of this very name")
    assert [one.path.name for one in find_inputs(["memory://talks/[ab]*.wav"]).found] == ["[ab]*.wav"]
    assert files_in("memory://talks/a.wav") is None
    (missing,) = find_inputs(["memory://talks/*.mp3"]).found
    assert "nothing matches" in missing.error.message


@pytest.mark.parametrize("top", ["hosted://who:pass@host", "hosted://who:pass@host/talks"])
def test_what_is_found_on_a_host_whose_files_go_by_their_path_alone_is_on_that_host(store, top):
    import fsspec
    from fsspec.utils import infer_storage_options

    class Hosted(type(store)):
        protocol = "hosted"

        @classmethod
        def _strip_protocol(cls, path):  # as SFTP has it
            return infer_storage_options(path)["path"].rstrip("/")

    fsspec.register_implementation("hosted", Hosted, clobber=True)
    put(f"{top}/a.wav", b"sound")
    assert list(map(address, files_in(top))) == [f"{top}/a.wav"]
    assert list(map(address, matching(f"{top}/*.wav"))) == [f"{top}/a.wav"]
    assert exists(*listed(top))


def test_stores_are_asked_of_many_files_side_by_side_and_told_of_in_order(store, sound):
    import fsspec

    together = Barrier(4, timeout=10)

    class Slow(type(store)):
        """Answers when four ask at once."""

        protocol = "slowly"

        @classmethod
        def _strip_protocol(cls, path):
            return super()._strip_protocol(path.removeprefix("slowly:/"))

        def info(self, path, **how):
            if path.endswith(".wav"):
                together.wait()
            return super().info(path, **how)

        def _open(self, path, *more, **how):
            together.wait()
            return super()._open(path, *more, **how)

    fsspec.register_implementation("slowly", Slow, clobber=True)
    for name in "dcba":
        store.pipe_file(f"/talks/{name}", sound().read_bytes())
        store.pipe_file(f"/{name}.wav", b"")
    given = [f"slowly://{name}.wav" for name in "bdac"]
    assert [address(one.path) for one in find_inputs(given).found] == given
    assert [one.path.name for one in find_inputs(["slowly://talks"]).found] == ["a", "b", "c", "d"]


def test_what_is_put_can_be_read_and_measured():
    put("memory://a/b.txt", b"text")
    held = BytesIO(b"more of the try before")
    assert copy("memory://a/b.txt", held) == hashlib.sha256(b"text").hexdigest()
    assert held.getvalue() == b"text"
    size, time_ns = size_and_time("memory://a/b.txt")
    assert size == 4
    assert time_ns > 1.6e18
    assert exists(Path("memory://a/b.txt"))
    assert not exists(Path("memory://a/c.txt"))


def test_errors_of_whatever_kind_are_of_the_system():
    with pytest.raises(OSError, match="Protocol not known: unknown"):
        reach("unknown://host/a")
    with pytest.raises(OSError, match="Connect call failed"):
        copy("http://127.0.0.1:1/a.wav", BytesIO())
    with pytest.raises(FileNotFoundError):
        copy("memory://no/such", BytesIO())
    with pytest.raises(OSError, match="https is for reading only"):
        put("https://host/a.txt", b"")


def test_an_address_that_leads_nowhere_fails_by_itself(scripted, sound):
    put("memory://talks/a.wav", sound("a.wav").read_bytes())
    put("memory://talks/empty.wav", b"")
    gone, empty, whole = run("memory://talks/gone.wav", "memory://talks/empty.wav", "memory://talks/a.wav")
    assert gone.error.message == "memory://talks/gone.wav: no such file"
    assert "the file is empty" in empty.error.message
    assert whole.transcript.text


def test_outputs_beside_a_far_input_and_a_rerun(scripted, sound, store):
    put("memory://talks/a.wav", sound("a.wav").read_bytes())
    (here,) = run(str(sound("a.wav")))
    (made,) = run("memory://talks/a.wav", formats=("txt",))
    assert [address(path) for path in made.written] == ["memory://talks/a.txt"]
    assert store.cat_file("/talks/a.txt").decode() == here.transcript.text + "\n"
    assert run("memory://talks/a.wav", formats=("txt",))[0].is_skipped
    put("memory://talks/a.wav", sound("b.wav").read_bytes())
    (changed,) = run("memory://talks/a.wav", formats=("txt",))
    assert changed.transcript.text != here.transcript.text
    put("memory://talks/a.txt", b"edited")
    (kept,) = run("memory://talks/a.wav", formats=("txt",))
    assert kept.notes[0].startswith("kept a.txt: changed since")


def test_where_nothing_can_be_written_is_said_before_any_work(sound):
    (beside,) = plan_outputs(find_inputs(["https://host/a.wav"]).found, ("txt",), None)
    assert beside.error.message == "https://host: cannot be written to: https is for reading only"
    with pytest.raises(RequestError, match=r"unknown://host: cannot be reached"):
        plan_outputs(find_inputs([str(sound("a.wav"))]).found, ("txt",), Path("unknown://host"))
    with pytest.raises(RequestError, match=r"s3://bucket//texts: two slashes in a row"):
        output_folder("s3://bucket//texts")
    assert address(output_folder("S3://bucket/texts/")) == "s3://bucket/texts"


def test_recordings_of_the_web_are_heard_and_known_again_however_the_server_gives_them(
    scripted, sound, web, tmp_path
):
    (here,) = run(str(sound("web.wav")))
    pages = ("whole", "ranges", "unmeasured", "moved", "signed")
    given = [f"{web}/{page}/{page}.wav?X-Amz-Signature=right#t=1" for page in pages]
    made = run(*given, formats=("txt",), folder=tmp_path)
    assert [one.error for one in made] == [None] * 5
    assert {one.transcript.text for one in made} == {here.transcript.text}
    assert [one.written for one in made] == [(tmp_path / f"{page}.txt",) for page in pages]
    again = run(*given, formats=("txt",), folder=tmp_path)
    assert [(one.is_skipped, one.notes) for one in again] == [(True, ())] * 5


def test_what_the_web_does_not_give_is_one_line(scripted, web):
    expected = {
        "none/a.wav": "no such file",
        "signed/a.wav?X-Amz-Signature=wrong": "cannot be opened: the server answers 403 Forbidden",
        "cut/a.wav": "cannot be opened: Response payload is not completed",
        "torn/a.wav": "cannot be opened: Response payload is not completed",
        "page": "not audio, or too damaged to open",
        "folder/": "names no file, and what is in a folder of a web server cannot be asked for",
    }
    said = [one.error.message for one in run(*(f"{web}/{page}" for page in expected))]
    assert sorted(line.partition(": <")[0] for line in said) == sorted(
        f"{web}/{page.partition('?')[0]}: {why}" for page, why in expected.items()
    )


def test_what_may_pass_is_tried_again_twice_and_nothing_else(scripted, web, tmp_path, monkeypatch):
    pages = ("shaky", "busy", "none", "signed")
    made = run(*(f"{web}/{page}/{page}.wav" for page in pages), formats=("txt",), folder=tmp_path)
    monkeypatch.setattr(remote_files, "_WEB_PATIENCE_S", 0.5)
    made += run(f"{web}/silent/silent.wav", formats=("txt",), folder=tmp_path)
    assert [one.error and one.error.message.partition(".wav: ")[2] for one in made] == [
        None,
        "cannot be opened: the server answers 429 Too Many Requests",
        "no such file",
        "cannot be opened: the server answers 403 Forbidden",
        "cannot be opened: the server does not answer",
    ]
    fetched = [one.split("/")[1] for one in Web.asked if one.startswith("GET")]
    assert fetched.count("shaky") == 3
    assert fetched.count("silent") == 4  # it had begun
    assert fetched.count("busy") == 6  # to be told of it, and for it
    assert fetched.count("none") == fetched.count("signed") == 2
    assert run(f"{web}/shaky/shaky.wav", formats=("txt",), folder=tmp_path)[0].is_skipped


def test_a_file_is_fetched_once(scripted, web, tmp_path):
    run(f"{web}/whole/a.wav", formats=("txt",), folder=tmp_path)
    assert Web.asked == ["HEAD /whole/a.wav", "GET /whole/a.wav"]


def test_of_a_folder_only_the_beginning_is_looked_at_of_what_has_no_telling_name(sound, monkeypatch):
    monkeypatch.setattr(inputs, "_HEAD_BYTES", 1000)
    for name in ("speech", "talk.bin", "notes.txt", "image.png"):
        put(f"memory://odd/{name}", sound().read_bytes() if name in {"speech", "talk.bin"} else b"no" * 2000)
    fetched = []
    monkeypatch.setattr(inputs, "head", lambda where, size: fetched.append(where) or head(where, size))
    found = find_inputs(["memory://odd"])
    assert [one.path.name for one in found.found] == ["speech", "talk.bin"]
    assert fetched == [f"memory://odd/{name}" for name in ("image.png", "speech", "talk.bin")]
    assert found.notes == ("memory://odd: ignored 1 file that is no audio",)
    assert head("memory://odd/image.png", 1000) == b"no" * 500


def test_a_proxy_is_used_and_a_time_that_is_none_is_none(web, monkeypatch):
    monkeypatch.setenv("http_proxy", web)
    held = BytesIO()
    copy("http://host.invalid/whole/a.wav", held)
    assert held.getvalue() == Web.content
    assert size_and_time("http://host.invalid/whole/a.wav") == (len(Web.content), None)


@pytest.mark.parametrize("package", ["fsspec", "aiohttp"])
def test_without_its_package_the_web_asks_for_it(scripted, web, monkeypatch, package):
    monkeypatch.setitem(sys.modules, package, None)
    (missing,) = run(f"{web}/whole/a.wav")
    assert "pip install 'as2d[ray]'" in missing.error.message


def test_secrets_in_addresses_are_neither_said_nor_written_down(as2d, scripted, web, tmp_path):
    where = web.replace("//", "//who:pa55@")
    cache = tmp_path / "cache"
    ended = as2d(
        *("transcribe", f"{where}/whole/a.wav?key=5ec4e7", f"{where}/cut/b.wav?key=5ec4e7"),
        *("-o", "out", "-f", "all", "--json", "-v"),
        AS2D_CACHE_DIR=str(cache),
    )
    assert ended.code == 1
    assert [one["file"].partition("?")[0] for one in ended.records()[:2]] == [
        f"{web}/whole/a.wav",
        f"{web}/cut/b.wav",
    ]
    written = [path.read_bytes() for folder in (tmp_path / "out", cache) for path in folder.rglob("*.*")]
    assert len(written) >= 2 * 8
    for text in (ended.out.encode(), ended.err.encode(), *written):
        assert b"pa55" not in text
        assert b"5ec4e7" not in text


def test_outputs_on_the_web_are_refused_before_any_work(as2d, scripted, web):
    ended = as2d("transcribe", f"{web}/whole/a.wav", "-o", f"{web}/out")
    assert ended.code == 2
    assert ended.err.splitlines() == [
        f"as2d: error: {web}/out: cannot be written to: http is for reading only",
        "hint: -o needs a folder you may write to",
    ]
    assert Web.asked == []
