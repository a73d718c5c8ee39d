"""Ways to make a sound file hostile, by its kind: the text of a tree, binary fields, an archive."""

from __future__ import annotations

import copy
import io
import json
import math
import random
import struct
import zipfile
from collections.abc import Callable
from typing import Any

from damaged import EXTREMES, damage

Mutation = Callable[[random.Random, bytes], bytes]
Tree = Any
"""What JSON and TOML hold: dicts, lists and plain values."""

_DEEP, _DIGITS = "@deep@", "@digits@"
_NUMBERS = [*EXTREMES, -1, 2, 2**31 - 1, -(2**31), 2**53 + 1, 2**63, 2**64, -(2**63), 10**30]
_NUMBERS += [0.5, -0.0, 1e308, 1e-320, math.inf, -math.inf, math.nan]
_TEXTS = ["", "a", "\0", "../x", "/etc/passwd", "a/../../x", "CON", "c:\\x", "\x1b]52;c;eA==\x07", "\ud800"]
_TEXTS += [
    "\u202egnp.exe",
    "a\nb",
    "x" * 5000,
    "-1",
    "1e999",
    "[bold]",
    "日本語",
    "~nobody/x",
    " ",
    "a\u0000b",
]
_OTHERS = [
    None,
    True,
    False,
    [],
    {},
    [[]],
    [{}],
    {"": ""},
    [0] * 1000,
    [[0]] * 10,
    {"a": {"b": [1]}},
    _DEEP,
    _DIGITS,
]


def tree_edited(draw: random.Random, tree: Tree) -> Tree:
    """Change one to four places of a tree in place; return it, or what replaces it."""
    box = [tree]
    for _ in range(draw.choice([1, 1, 1, 2, 4])):
        holder, key = _place(draw, box)
        _EDITS[draw.randrange(len(_EDITS))](draw, holder, key, box)
    return box[0]


def _place(draw: random.Random, box: list[Tree]) -> tuple[Any, Any]:
    """Return a list or dict and a key of it, on any level of the tree."""
    holder: Any = box
    key: Any = 0
    while isinstance(holder[key], list | dict) and holder[key] and draw.random() < 0.8:
        holder = holder[key]
        key = draw.randrange(len(holder)) if isinstance(holder, list) else draw.choice(list(holder))
    return holder, key


def _hostile(draw: random.Random) -> Tree:
    return copy.deepcopy(draw.choice(draw.choice([_NUMBERS, _TEXTS, _OTHERS])))


def _replace(draw: random.Random, holder: Any, key: Any, box: list[Tree]) -> None:
    holder[key] = _hostile(draw)


def _nudge(draw: random.Random, holder: Any, key: Any, box: list[Tree]) -> None:
    value = holder[key]
    if isinstance(value, bool) or not isinstance(value, int | float):
        holder[key] = [value] * draw.choice([0, 2, 50])
    else:
        holder[key] = draw.choice(
            [value + 1, value - 1, -value, value * 2, value * 2**32, str(value), value / 2]
        )


def _copy(draw: random.Random, holder: Any, key: Any, box: list[Tree]) -> None:
    other, place = _place(draw, box)
    if other is not box:  # a tree within itself has no text
        holder[key] = copy.deepcopy(other[place])


def _drop(draw: random.Random, holder: Any, key: Any, box: list[Tree]) -> None:
    if holder is not box:
        del holder[key]


def _rename(draw: random.Random, holder: Any, key: Any, box: list[Tree]) -> None:
    if isinstance(holder, dict):
        holder[draw.choice([*_TEXTS, f"{key}x"])] = holder.pop(key) if draw.random() < 0.5 else _hostile(draw)
    else:
        holder.insert(draw.randrange(len(holder) + 1) if holder is not box else 1, _hostile(draw))


_EDITS = [_replace, _replace, _replace, _nudge, _nudge, _copy, _drop, _rename]


def json_mutation(draw: random.Random, data: bytes) -> bytes:
    """Edit the tree of a JSON file, or its bytes, or both."""
    if draw.random() < 0.7:
        data = _json(draw, tree_edited(draw, json.loads(data)))
    return damage(draw, data, [data]) if draw.random() < 0.4 else data


def _json(draw: random.Random, tree: Tree) -> bytes:
    depth = draw.choice([50, 900, 5000, 100_000])
    text = json.dumps(tree).replace(f'"{_DIGITS}"', "1" * 5000)
    return text.replace(f'"{_DEEP}"', "[" * depth + "]" * depth).encode()


def toml_mutation(draw: random.Random, data: bytes, parsed: Tree) -> bytes:
    """Edit the tree of a TOML file, which is `parsed`, or its bytes, or both."""
    if draw.random() < 0.7:
        tree = tree_edited(draw, copy.deepcopy(parsed))
        lines = (
            f"{json.dumps(key)} = {_toml(draw, value)}"
            for key, value in (tree.items() if isinstance(tree, dict) else ())
        )
        data = "\n".join(lines).encode()
    return damage(draw, data, [data]) if draw.random() < 0.4 else data


def _toml(draw: random.Random, value: Tree) -> str:
    if isinstance(value, dict):
        return (
            "{ " + ", ".join(f"{json.dumps(key)} = {_toml(draw, one)}" for key, one in value.items()) + " }"
        )
    if isinstance(value, list):
        return "[" + ", ".join(_toml(draw, one) for one in value) + "]"
    if value == _DEEP:
        depth = draw.choice([50, 900, 5000])
        return "[" * depth + "]" * depth
    if value == _DIGITS:
        return "1" * 5000
    return str(value) if isinstance(value, float) else json.dumps("" if value is None else value)


def headed_mutation(draw: random.Random, data: bytes) -> bytes:
    """Edit a safetensors file: the tree of its header, the header's length, or the bytes of its beginning."""
    length = int.from_bytes(data[:8], "little")
    header, rest = data[8 : 8 + length], data[8 + length :]
    way = draw.random()
    if way < 0.6:
        header = _json(draw, tree_edited(draw, json.loads(header)))
        length = len(header)
    elif way < 0.9:
        header = damage(draw, header, [header])
    if draw.random() < 0.2:
        length = draw.choice([*EXTREMES, length + 1, length - 1, len(data)])
    if draw.random() < 0.2:
        rest = rest[: draw.randrange(len(rest))]
    return (length % 2**64).to_bytes(8, "little") + header + rest


def field_mutation(spans: list[tuple[int, int]]) -> Mutation:
    """Return a mutation that knows the fields of a binary file: `spans` are places and sizes."""

    def mutate(draw: random.Random, data: bytes) -> bytes:
        changed = bytearray(data)
        for _ in range(draw.choice([1, 1, 1, 2, 4])):
            start, size = draw.choice(spans)
            _change_field(draw, changed, start, size)
        return damage(draw, bytes(changed), [data]) if draw.random() < 0.2 else bytes(changed)

    return mutate


def _change_field(draw: random.Random, data: bytearray, start: int, size: int) -> None:
    field, way = data[start : start + size], draw.random()
    if way < 0.6 and size in (1, 2, 4, 8):
        value = int.from_bytes(field, "little")
        value = draw.choice([*EXTREMES, 2**63, 2**64 - 1, 2**60, value + 1, value - 1, value * 2, value * 32])
        data[start : start + size] = (value % 256**size).to_bytes(size, "little")
    elif way < 0.8:
        data[start : start + size] = damage(draw, bytes(field), [bytes(field)])
    elif way < 0.9:
        del data[start : start + size]
    else:
        data[start:start] = field * draw.choice([1, 2, 100])


_MEMBERS = [
    "p/data/a.bin",
    "p/data/sub/b.json",
    "p/data/../../x",
    "/x",
    "../x",
    "p/data/a.bin/",
    "C:\\x",
    "p\\x",
]


def archive_mutation(draw: random.Random, data: bytes) -> bytes:
    """Damage an archive, or make one of members that are links, encrypted, or not where they say."""
    if draw.random() < 0.5:
        return damage(draw, data, [data])
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name in [*_MEMBERS[:2], *draw.sample(_MEMBERS, draw.randrange(4))]:
            member = zipfile.ZipInfo(name)
            member.external_attr = draw.choice(
                [0, 0o120777 << 16, 0o644 << 16, 0o040755 << 16, 0o060666 << 16]
            )
            member.compress_type = draw.choice([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
            archive.writestr(member, draw.choice([b"/etc/passwd", b"../../x", bytes(2_000_000), b""]))
    made = bytearray(file.getvalue())
    for _ in range(draw.choice([0, 1, 1, 2])):  # sizes, flags and methods of a member, as claimed
        place = made.rfind(b"PK\x01\x02", 0, draw.randrange(1, len(made) + 1))
        form, at = draw.choice(
            [("<H", 8), ("<H", 10), ("<I", 16), ("<I", 20), ("<I", 24), ("<H", 28), ("<I", 42)]
        )
        if place >= 0:
            struct.pack_into(
                form,
                made,
                place + at,
                draw.choice([*EXTREMES, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA]) % 256 ** struct.calcsize(form),
            )
    return bytes(made)
