"""Addresses of remote files, `s3://bucket/talk.wav` and whatever else fsspec reaches, as paths and back.

Such an address goes through the program as the path that Python makes of it, `s3:/bucket/talk.wav`: its
stem, its parent and its place below a folder come from the path as for any other file. This module turns
the path into an address again. A relative path of this machine that would read as one, `rec:/in.wav`, goes
through the program as an absolute path. What follows a name on the web goes before it,
`https:/host/?%3Fid%3D1/talk.wav`, so that the name stays last.
"""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path
from typing import Final
from urllib.parse import quote, unquote

_ADDRESS: Final = re.compile(r"(?P<scheme>[a-z][a-z0-9+]+):/+(?P<rest>.*)", re.DOTALL)
_THIS_MACHINE: Final = re.compile(r"file:(//(localhost)?)?(?P<path>/(?!/).*)", re.DOTALL)
_SCHEME: Final = re.compile(r"\A[A-Za-z][A-Za-z0-9+]+://")
_NOTHING: Final = re.compile("[a-z][a-z0-9+]+:/*")
_COLON_FOLDER: Final = re.compile("(?P<folder>[a-z][a-z0-9+]+:)(/(?!/).*)?", re.DOTALL)
"""What a relative path may begin with, and an address as a path does."""
WEB: Final = frozenset({"http", "https"})
_WEB_FILE: Final = re.compile(
    r"(?P<folder>https?:/+[^?#]+)/(?P<name>[^/?#]+)(?P<query>(/?\?[^#]*)?)(#.*)?", re.DOTALL
)
_QUERY_BEFORE_NAME: Final = re.compile(r"/\?(?P<query>(?:%2F)?%3F[^/]*)(?P<name>(?:/[^/]*)?)")
_SIGNATURE: Final = re.compile(
    "x-(amz|goog)-.*|signature|expires|policy|key-pair-id|awsaccesskeyid|googleaccessid", re.IGNORECASE
)
"""Parameters that let somebody in, and say nothing of which file: of S3, Google's storage and CloudFront."""
_PASSWORD: Final = re.compile("^(?P<who>[^/:@]*):[^/]*@")
_SECRETS: Final = re.compile(r"(?P<before>\bhttps?://)(?:[^/\s]*@)?(?P<rest>[^\s?]*)(?:\?\S*)?")


def address(path: str | Path) -> str | None:
    """Return the address that a path stands for, None for one on this machine.

    >>> address(Path("s3://bucket/a.wav")), address(Path("/a.wav"))
    ('s3://bucket/a.wav', None)
    """
    found = _ADDRESS.fullmatch(_lowered(str(path)))
    if found is None:
        return None
    rest = found["rest"]
    if found["scheme"] in WEB and (query := _QUERY_BEFORE_NAME.search(rest)):
        rest = rest[: query.start()] + query["name"] + (_unquoted(query["query"]) if query["name"] else "")
    return f"{found['scheme']}://{rest}"


def located(text: str) -> Path:
    """Return the path of what was given as a text; `file://` is this machine (RFC 8089).

    Schemes may be in capitals (RFC 3986 section 3.1), if two slashes follow that mark them. After one slash
    it is a path of this machine if its first folder exists.

    >>> str(located("https://host/talks/a.wav?id=1#t=10"))
    'https:/host/talks/?%3Fid%3D1/a.wav'
    """
    if (relative := _COLON_FOLDER.fullmatch(text)) and os.path.lexists(relative["folder"]):
        return local(Path(text))
    text = _lowered(text)
    if here := _THIS_MACHINE.fullmatch(text):
        return Path(_unquoted(here["path"]))
    file = _WEB_FILE.fullmatch(text)
    if file and not _QUERY_BEFORE_NAME.search(text):  # else it is such a path already
        query = f"?{quote(file['query'], safe='', errors='surrogateescape')}" if file["query"] else ""
        return Path(file["folder"], query, file["name"])
    return local(Path(text)) if address(text) is None else Path(text)


def local(path: Path) -> Path:
    """Return a path of this machine as one that no address looks like, nor that of a file in it."""
    return path.absolute() if _COLON_FOLDER.fullmatch(str(path)) else path


def _lowered(text: str) -> str:
    return _SCHEME.sub(lambda scheme: scheme[0].lower(), text)


def _unquoted(text: str) -> str:
    return unquote(text, errors="surrogateescape")  # as Python has names that are no UTF-8


def flaw(text: str) -> str | None:
    """Return why an address cannot be used as it was written, None if it can, or is none."""
    text = _lowered(text)
    if _NOTHING.fullmatch(text) and not os.path.lexists(text):
        return "names no file, folder or bucket"
    where = address(located(text))
    if where is None:
        return None
    if where.startswith("file:"):
        return "file:// is for this machine: file:///folder/talk.wav"
    is_web = where.partition("://")[0] in WEB
    if is_web and (why := _web_flaw(text, where)):
        return why
    kept = text.partition("#")[0] if is_web else text.rstrip("/")
    is_lost = "://" in text and where != kept
    return "two slashes in a row, or a dot between two, cannot be told from one" if is_lost else None


def _web_flaw(text: str, where: str) -> str | None:
    if "://" in text and not _WEB_FILE.fullmatch(text):
        return "names no file, and what is in a folder of a web server cannot be asked for"
    return "patterns need folders, and a web server has none" if "*" in where.partition("?")[0] else None


def absolute(path: Path) -> str:
    """Return a name that is the same wherever it is called from, and holds no secrets; links stay."""
    return os.path.abspath(path) if address(path) is None else shown(path)  # noqa: PTH100


def anchored(path: Path) -> Path:
    """Return the path that leads to the same file from another current folder."""
    return path.absolute() if address(path) is None else path


def shown(path: str | Path) -> str:
    """Return what to call a file in messages and records: its path, or its address without secrets.

    Passwords are left out. On the web, so is who asks, and a digest stands for the query without signature,
    so that a new one is the same file, but another number is another one.
    """
    where = address(path)
    if where is None:
        return str(path)
    scheme, _, rest = where.partition("://")
    if scheme not in WEB:
        return f"{scheme}://" + _PASSWORD.sub(r"\g<who>@", rest)
    rest, _, query = re.sub("^[^/]*@", "", rest).partition("?")
    selects = [one for one in query.split("&") if one and not _SIGNATURE.fullmatch(one.partition("=")[0])]
    digest = hashlib.sha256("&".join(selects).encode("utf-8", "surrogateescape")).hexdigest()[:12]
    return f"{scheme}://{rest}{f'?~{digest}' if selects else ''}"


def without_secrets(text: str) -> str:
    """Return what a library says, its addresses of the web without who asks and query."""
    return _SECRETS.sub(r"\g<before>\g<rest>", text)
