"""The backend goes by what is asked for, what is installed and the processor, and is settled once."""

import sys

import pytest

from as2d_cli.domain.errors import ModelError
from as2d_whisper.backends import choice
from as2d_whisper.backends.choice import settle

ZEN_4 = frozenset({"avx2", "avx512_vnni", "avx512_bf16"})
ALDER_LAKE = frozenset({"avx2", "avx_vnni"})
HASWELL = frozenset({"avx2"})


@pytest.fixture
def machine(monkeypatch):
    """Pretend to be a machine with these processor flags, and OpenVINO or a reason against it."""

    def pretend(flags, flaw=None):
        monkeypatch.setattr(choice, "cpu_flags", lambda: flags)
        monkeypatch.setattr(choice, "_openvino_flaw", lambda: flaw)

    return pretend


@pytest.mark.parametrize(
    ("flags", "flaw", "backend", "precision"),
    [
        (ZEN_4, None, "openvino", "bf16"),
        (ALDER_LAKE, None, "openvino", "f32"),
        (HASWELL, None, "mnn", "f32"),
        (ZEN_4, "the package openvino is not installed", "mnn", "f32"),
        (frozenset(), "it is for x86-64 processors, and this is aarch64", "mnn", "f32"),
    ],
)
@pytest.mark.parametrize("asked", [{}, {"backend": "auto"}])
def test_auto_goes_by_the_processor_and_by_what_is_installed(machine, asked, flags, flaw, backend, precision):
    machine(flags, flaw)
    settled = settle({**asked, "context": "full"})
    assert settled == {"backend": backend, "precision": precision, "context": "full"}
    assert settle(settled) == settled


def test_a_backend_that_is_asked_for_is_taken_on_any_processor_that_has_it(machine):
    machine(HASWELL)
    assert settle({"backend": "openvino"}) == {"backend": "openvino", "precision": "f32"}
    machine(ZEN_4)
    assert settle({"backend": "mnn"}) == {"backend": "mnn", "precision": "f32"}
    assert settle({"backend": "openvino", "precision": "f32"})["precision"] == "f32"


def test_a_backend_that_is_not_there_is_an_error_that_says_why(machine):
    machine(ZEN_4, "the package openvino is not installed")
    with pytest.raises(ModelError, match="openvino cannot be used: the package openvino is not installed"):
        settle({"backend": "openvino"})
    with pytest.raises(ModelError, match="option backend is 'tensorrt'"):
        settle({"backend": "tensorrt"})
    machine(ZEN_4)
    for backend in ("auto", "mnn"):
        with pytest.raises(ModelError, match="option precision is 'f16'"):
            settle({"backend": backend, "precision": "f16"})


def test_a_precision_that_a_backend_does_not_have_is_refused_where_it_was_named(machine):
    machine(HASWELL)
    with pytest.raises(ModelError, match="backend mnn computes in f32"):
        settle({"backend": "mnn", "precision": "bf16"})
    assert settle({"precision": "bf16"})["precision"] == "f32", "auto takes what there is"


def test_a_library_that_cannot_be_loaded_is_as_good_as_none(tmp_path, monkeypatch):
    (tmp_path / "openvino" / "libs").mkdir(parents=True)
    (tmp_path / "openvino" / "__init__.py").touch()
    (tmp_path / "openvino" / "libs" / "libopenvino.so.1").write_bytes(b"no library")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "openvino", raising=False)
    monkeypatch.setattr(choice.platform, "machine", lambda: "x86_64")
    flaw = choice._openvino_flaw.__wrapped__()
    assert flaw.startswith("libopenvino.so.1 cannot be loaded: ")
