"""Addresses as paths, and what of them is shown and written down."""

from pathlib import Path

import pytest

from as2d_cli.system.addresses import absolute, address, anchored, flaw, located, shown, without_secrets
from as2d_cli.system.printable import printable

SIGNED = "https://who:pass@host/talks/a.wav?X-Amz-Signature=5ec4e7&versionId=3#t=10"


@pytest.mark.parametrize(
    "text",
    ["s3://bucket/a b.wav", "gs://bucket/a#1 ü%20::?.wav", "https://host/talks/a.mp3", "memory://a/b"],
)
def test_an_address_survives_being_a_path(text):
    path = located(text)
    assert address(path) == absolute(path) == shown(path) == printable(str(path)) == text
    assert address(path.parent / "c.txt") == text.rpartition("/")[0] + "/c.txt"
    assert anchored(path) == located(str(path)) == path
    assert flaw(text) is None


@pytest.mark.parametrize("text", ["S3://bucket/A b.wav", "Https://Host/talks/a.mp3", "MEMORY://a/b"])
def test_schemes_may_be_in_capitals(text):
    scheme, _, rest = text.partition("://")
    assert address(located(text)) == address(text) == f"{scheme.lower()}://{rest}"
    assert flaw(text) is None


@pytest.mark.parametrize(
    "text", ["/a/b.wav", "a:b.wav", "S3:/a.wav", "./S3://a.wav", "C:/a.wav", "-", "Ärger:/x"]
)
def test_a_path_of_this_machine_is_no_address(text):
    assert address(Path(text)) is None
    assert flaw(text) is None
    assert anchored(Path(text)).is_absolute()


@pytest.mark.parametrize("name", ["rec:/in.wav", "s3:/bucket/a.wav", "http:/a", "file:/a.wav"])
def test_a_path_through_a_folder_here_that_ends_in_a_colon_is_no_address(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    folder, _, rest = name.partition("/")
    far = located(f"s3://{rest}")
    (tmp_path / folder).mkdir()
    for text in (name, f"{folder}/missing/b.wav", folder):
        assert located(text) == tmp_path / text
        assert flaw(text) is None
        assert address(located(text)) is None
    assert located(f"s3://{rest}") == far  # two slashes say that an address is meant
    assert address(far) is not None


@pytest.mark.parametrize("start", ["file://", "file://localhost", "file:"])
def test_file_addresses_are_paths_of_this_machine(tmp_path, start):
    assert located(f"{start}{tmp_path}/a%20%C3%BC.wav") == tmp_path / "a ü.wav"
    assert located(f"{start}{tmp_path}/%FF.wav") == tmp_path / "\udcff.wav"  # as os.fsdecode has it


@pytest.mark.parametrize(
    ("text", "name", "asked"),
    [
        ("https://host/talks/a.wav?id=1&to=/b/c.mp3", "a.wav", None),
        ("https://host/get/?id=1", "get", None),
        ("https://host/get?\udcff%FF", "get", None),
        ("http://[::1]:80/a%20b.wav?x", "a%20b.wav", None),
        ("https://host/a.wav#t=10", "a.wav", "https://host/a.wav"),
        (SIGNED, "a.wav", SIGNED.partition("#")[0]),
    ],
)
def test_names_on_the_web_come_from_the_path_and_what_follows_is_asked_for(text, name, asked):
    path = located(text)
    assert path.name == name
    assert address(path) == (asked or text)
    assert located(str(path)) == path
    assert flaw(text) is None


def test_who_asks_and_signatures_are_not_shown_but_other_numbers_are_other_files():
    one, two, renewed, other = map(
        located,
        (SIGNED, SIGNED.replace("=3", "=4"), SIGNED.replace("5ec4e7", "0"), "https://host/talks/a.wav"),
    )
    assert shown(one) == shown(renewed) == absolute(one) != shown(two)
    assert shown(one).startswith("https://host/talks/a.wav?~")
    assert not {"who", "pass", "5ec4e7", "versionId=3"} & set(shown(one).replace("?", "/").split("/"))
    assert shown(other) == shown(located("https://me@host/talks/a.wav?Expires=9&Signature=x"))
    assert shown(one.parent) == "https://host/talks"
    assert shown(Path("sftp://who:pass@host/a.wav")) == "sftp://who@host/a.wav"
    assert shown(Path("abfs://box@account/a.wav")) == "abfs://box@account/a.wav"
    assert (
        without_secrets(f"no such page: '{SIGNED}' (gone)")
        == "no such page: 'https://host/talks/a.wav (gone)"
    )


@pytest.mark.parametrize("where", ["http://who:p@55@host/a.wav", "https://host/it's.wav?(a)'b'\"&key=p@55"])
def test_nothing_of_a_secret_is_left_in_what_a_library_says_whatever_stands_in_the_address(where):
    said = without_secrets(f"Connection timeout to host {where} after 60 s")
    assert said.startswith("Connection timeout to host http")
    assert said.endswith(".wav after 60 s")
    assert "55" not in said


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("s3://", "names no file, folder or bucket"),
        ("s3:///key", "two slashes"),
        ("s3://bucket/a//b.wav", "two slashes"),
        ("s3://bucket/./b.wav", "a dot between"),
        ("file://host/a.wav", "is for this machine"),
        ("https://host", "names no file"),
        ("https://host/?id=1", "names no file"),
        ("https://host/talks/", "a folder of a web server"),
        ("https://host/*.wav", "patterns need folders"),
    ],
)
def test_what_cannot_be_told_or_asked_for_is_said(text, why):
    assert why in flaw(text)
