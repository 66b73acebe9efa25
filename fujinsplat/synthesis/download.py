"""Files from a server: over HTTPS, never larger than asked for, continued where a stopped run ended."""

import http.client
import ipaddress
import os
import time
import urllib.error
import urllib.request
from pathlib import Path
from urllib.parse import urlsplit

from fujinsplat.core.errors import UserError
from fujinsplat.core.files import sha256

CHUNK = 1 << 20
ATTEMPTS, WAIT = 4, 2.0
LARGEST_TEXT = 4_000_000  # bytes


class TooLarge(Exception):
    """The server has more to send than is wanted."""


def check_address(url: str) -> None:
    """Nothing but HTTPS; plain HTTP to this machine alone, for a local copy of a dataset."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        raise UserError(f"{url!r} is no address; give one that starts with https://") from None
    if host and (parts.scheme == "https" or (parts.scheme == "http" and _loopback(host))):
        return
    raise UserError(f"{url}: only https addresses are fetched from; give one that starts with https://")


def _loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class _CheckedRedirects(urllib.request.HTTPRedirectHandler):
    """An address that would not be asked is not asked when another one sends there either."""

    def redirect_request(self, req, fp, code, msg, headers, newurl):
        check_address(newurl)
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _open(url: str, headers: dict[str, str] | None = None):
    """An answer to one request."""
    check_address(url)
    request = urllib.request.Request(url, headers=headers or {})
    return urllib.request.build_opener(_CheckedRedirects).open(request, timeout=60)


def _patiently(url: str, fetch, remedy: str):
    """`fetch()`, again after a while where the connection or the server fails; a refusal is final."""
    for attempt in range(ATTEMPTS):
        try:
            return fetch()
        except TooLarge as error:
            raise UserError(f"{url}: {error}; {remedy}") from None
        except urllib.error.HTTPError as error:
            if error.code < 500:
                raise UserError(f"{url}: the server answers {error.code} {error.reason}; {remedy}") from None
            reason = f"{error.code} {error.reason}"
        except (OSError, EOFError, ValueError, http.client.HTTPException) as error:
            reason = " ".join((str(error) or type(error).__name__).split())[:160]
        if attempt == ATTEMPTS - 1:
            raise UserError(f"{url} could not be fetched ({reason}); {remedy}, or run the same command again to go on")
        time.sleep(WAIT * (attempt + 1))
    raise AssertionError("unreachable")


def fetch_text(url: str, remedy: str) -> str:
    """A small text file; `remedy` ends the sentence where it cannot be had."""

    def fetch() -> str:
        with _open(url) as response:
            content = response.read(LARGEST_TEXT + 1)
        if len(content) > LARGEST_TEXT:
            raise TooLarge(f"more than {LARGEST_TEXT // 10**6} MB where a short text was expected")
        return content.decode(errors="replace")

    return _patiently(url, fetch, remedy)


def download(url: str, path: Path, largest: int, wanted: str | None = None) -> str:
    """Fetch `url`, of at most `largest` bytes, to `path` and return its SHA-256 (which must be `wanted`, if given).

    A part left by a stopped run is continued where it ends. A file is complete when the server's length is reached;
    until then it is called `.part`. One that turns out too large, or is another one, leaves nothing behind.
    """
    part = path.with_name(f".{path.name}.part")
    path.parent.mkdir(parents=True, exist_ok=True)
    continued = part.is_file()
    try:
        _patiently(url, lambda: _fetch(url, part, largest), "check --server, or raise --largest-mb")
    except UserError:
        if part.is_file() and (part.stat().st_size == 0 or part.stat().st_size >= largest):
            part.unlink()
        raise
    digest = sha256(part)
    if wanted not in (None, digest):
        part.unlink()
        if continued:  # its beginning came from another run: fetch it whole before anybody is blamed
            return download(url, path, largest, wanted)
        raise UserError(
            f"{url} is another file than the one that is pinned (SHA-256 {digest[:12]}…, wanted {wanted[:12]}…); "
            "ask who serves it why, or remove its line from the list of checksums to take the new one"
        )
    os.replace(part, path)
    return digest


def _fetch(url: str, part: Path, largest: int) -> None:
    """One attempt: ask for what is missing; a server that sends everything instead starts the part again."""
    have = part.stat().st_size if part.is_file() else 0
    try:
        response = _open(url, {"Range": f"bytes={have}-"} if have else None)
    except urllib.error.HTTPError as error:
        if error.code == 416 and have:  # nothing is missing, or the part is longer than the file: fetch it whole
            part.unlink()
            return _fetch(url, part, largest)
        raise
    with response:
        continued = response.status == 206
        length = response.headers.get("Content-Length")
        if length is not None and not length.isdecimal():
            raise ValueError(f"the server says the file has {length[:40]!r} bytes")
        total = None if length is None else int(length) + (have if continued else 0)
        if total is not None and total > largest:
            raise TooLarge(f"it has {total / 1e6:.1f} MB, more than the {largest / 1e6:g} allowed")
        with part.open("ab" if continued else "wb") as stream:
            while chunk := response.read(CHUNK):
                if stream.tell() + len(chunk) > largest:
                    stream.truncate(0)
                    raise TooLarge(f"it has more than the {largest / 1e6:g} MB allowed")
                stream.write(chunk)
    if total is not None and part.stat().st_size != total:
        raise EOFError(f"connection ended after {part.stat().st_size} of {total} bytes")
