"""Imports native modules, also those that ask for an executable stack without needing it.

Since glibc 2.41 (January 2025) a process without an executable stack refuses to load a shared object whose
GNU_STACK header asks for one. Some wheels ask, because their assembly files do not say otherwise: none of
their code runs on the stack. This module loads such an object from memory with that bit cleared, as
`execstack -c` would on disk, and leaves the installed file alone. docs/decisions/0015-executable-stack.md
has the alternatives.
"""

from __future__ import annotations

import ctypes
import importlib
import importlib.util
import os
import struct
import sys
from importlib.machinery import ExtensionFileLoader, ModuleSpec
from pathlib import Path
from types import ModuleType

_ELF64_LITTLE_ENDIAN = b"\x7fELF\x02\x01"
_GNU_STACK = 0x6474E551  # PT_GNU_STACK of elf.h
_EXECUTABLE = 1  # PF_X


def import_native(name: str) -> ModuleType:
    """Import a top-level extension module. Raises `ImportError`."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        if "executable stack" not in str(error):
            raise
        spec = importlib.util.find_spec(name)
        if spec is None or spec.origin is None:
            raise
        return import_cleared(name, Path(spec.origin))


def import_cleared(name: str, file: Path) -> ModuleType:
    """Import an extension module (Linux) without the wish for an executable stack. Raises `ImportError`."""
    elf = file.read_bytes()
    for library in file.parent.glob("*.libs/*"):  # where wheels have what they bring; not found from memory
        if library.name.encode() in elf:
            ctypes.CDLL(str(library))
    memory = os.memfd_create(name)  # stays open: what is loaded later must not get the same path
    with open(memory, "wb", closefd=False) as opened:
        opened.write(cleared(elf))
    path = f"/proc/self/fd/{memory}"
    loader = ExtensionFileLoader(name, path)
    spec = ModuleSpec(name, loader, origin=path)
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    module.__file__ = loader.path = spec.origin = str(file)  # what asks where it is wants the file
    sys.modules[name] = module
    return module


def cleared(elf: bytes) -> bytes:
    """Return a 64-bit shared object, its GNU_STACK header without the bit that makes stacks executable.

    Raises `ImportError` if it is none.
    """
    if not elf.startswith(_ELF64_LITTLE_ENDIAN):
        raise ImportError("not a shared object of 64 bits")
    (headers_at,) = struct.unpack_from("<Q", elf, 0x20)
    size, count = struct.unpack_from("<HH", elf, 0x36)
    patched = bytearray(elf)
    for at in range(headers_at, headers_at + size * count, size):
        kind, flags = struct.unpack_from("<II", elf, at)
        if kind == _GNU_STACK:
            struct.pack_into("<I", patched, at + 4, flags & ~_EXECUTABLE)
    return bytes(patched)
