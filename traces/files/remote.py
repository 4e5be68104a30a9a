"""Files in object stores and in Hadoop, by address, read and written by the file systems of pyarrow.

The reader finds the credentials in its own environment, as the tools of each store do. They are part of no address,
travel to no worker, and are removed from every message of a store.
"""

from __future__ import annotations

import errno
import io
import os
import re
import socket
import stat
from collections.abc import Callable, Generator, Sequence
from configparser import ConfigParser
from configparser import Error as ConfigError
from datetime import timedelta
from fnmatch import fnmatchcase
from functools import cache
from glob import has_magic
from pathlib import Path, PosixPath
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import uuid4

from gapless.traces.problems import UsageError, shown
from gapless.traces.processes.timeouts import answer_within

if TYPE_CHECKING:
    from pyarrow.fs import FileInfo, FileSystem

WAITS = 15.0  # seconds until a store that does not answer counts as unreachable
ATTEMPTS = 2, 5  # at a request that a store refuses for no fault of ours, or of a patient one
UPLOADS = 600.0  # seconds for a file to arrive there
BUFFER = 1 << 17  # bytes that are asked for at once where fewer are needed

# By scheme: what stands between `//` and the next `/`, what that is, and where credentials come from instead.
AWS = r"[\w.-]+", "a bucket", "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE"
GOOGLE = r"[\w.-]+", "a bucket", "set GOOGLE_APPLICATION_CREDENTIALS"
AZURE = r"[\w.-]+(@[\w.-]+)?", "container@account", "log in with az login, or set AZURE_CLIENT_ID and its kin"
HADOOP = r"([\w.-]+@)?[\w.-]*(:\d+)?", "a host", "log in with kinit, or set HADOOP_USER_NAME"
SCHEMES = {
    **dict.fromkeys(("s3", "s3a"), AWS),
    **dict.fromkeys(("gs", "gcs"), GOOGLE),
    **dict.fromkeys(("abfs", "abfss"), AZURE),
    **dict.fromkeys(("hdfs", "viewfs"), HADOOP),
}
SEEN_EARLY = frozenset(f"{scheme}:" for scheme, meant in SCHEMES.items() if meant is HADOOP)
"""Schemes of stores that show a file while it is written, and rename none in place of another."""
DEFAULT = "default"  # the host of `hdfs:///…`, as Hadoop calls the one that is configured

Answer = TypeVar("Answer")


def path_of(text: str | os.PathLike[str]) -> Path:
    """Return the path of a text, local or remote. Raises UsageError, which repeats no credentials."""
    if isinstance(text, Path):
        return text
    match = re.fullmatch(r"([a-z][a-z0-9]+)://([^/]*)(.*)", os.fspath(text), re.DOTALL)
    if match is None or match[1] == "file":
        return Path(os.fspath(text).removeprefix("file://"))
    scheme, place, rest = match.groups()
    if scheme not in SCHEMES:
        raise UsageError(f"{scheme}://: nothing is read there, only at {', '.join(f'{name}://' for name in SCHEMES)}")
    form, what, credentials = SCHEMES[scheme]
    if not re.fullmatch(form, place, re.ASCII):
        raise UsageError(f"{scheme}://: {what} was expected behind it, and nothing else: for access, {credentials}")
    if option := re.search(r"[?&]([\w-]+)=", rest):
        raise UsageError(
            f"{scheme}://{place}: no option {option[1]} is taken from an address: for access, {credentials}"
        )
    return RemotePath(f"{scheme}://{place or DEFAULT}{rest}")


class RemotePath(PosixPath):
    """A remote file or folder, or a pattern of files: `s3://bucket/traces/events.parquet`.

    Methods raise OSError as those of a local path do, with a sentence, and within half a minute.
    """

    def __str__(self) -> str:
        scheme, place, *rest = self.parts
        return "/".join([f"{scheme}//{'' if place == DEFAULT else place}", *rest])

    def absolute(self) -> RemotePath:
        """Return itself: there is no remote working directory."""
        return self

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:  # noqa: ARG002 - as `Path` has it
        """Return size, time, and kind of a file or folder."""
        found = self._asked(_info)
        kind = {"File": stat.S_IFREG, "Directory": stat.S_IFDIR}.get(str(found.type.name))
        if kind is None:
            place = RemotePath(*self.parts[:2])
            why = f"there is no {place}" if place != self and not place.exists() else "no such file or directory"
            raise FileNotFoundError(errno.ENOENT, why)
        time = (found.mtime_ns or 0) // 10**9
        return os.stat_result((kind, 0, 0, 1, 0, 0, found.size or 0, time, time, time))

    def exists(self, *, follow_symlinks: bool = True) -> bool:  # noqa: ARG002 - as `Path` has it
        """True if there is such a file or folder."""
        return self._kind() != 0

    def is_file(self, *, follow_symlinks: bool = True) -> bool:  # noqa: ARG002 - as `Path` has it
        """True if it is a file."""
        return self._kind() == stat.S_IFREG

    def is_dir(self, *, follow_symlinks: bool = True) -> bool:  # noqa: ARG002 - as `Path` has it
        """True if it is a folder, or, in a store without folders, a prefix of file names."""
        return self._kind() == stat.S_IFDIR

    def _kind(self) -> int:
        try:
            return stat.S_IFMT(self.stat().st_mode)
        except FileNotFoundError:
            return 0

    def iterdir(self) -> Generator[RemotePath, None, None]:
        """List the folder."""
        yield from (path for path, _ in self.listed())

    def matching(self) -> list[tuple[RemotePath, int | None]]:
        """List what fits this pattern, as `glob` does, with the bytes of files: `**` is any number of folders."""
        plain = next(at for at, part in enumerate(self.parts) if has_magic(part))
        base, pattern = RemotePath(*self.parts[:plain]), self.parts[plain:]
        below = base.listed(recursive=len(pattern) > 1 or "**" in pattern)
        return [found for found in below if _fits(found[0].parts[plain:], pattern)]

    def listed(self, *, recursive: bool = False) -> list[tuple[RemotePath, int | None]]:
        """List the folder, or all below it, in the order of names, with the bytes of files. Raises OSError."""
        from pyarrow.fs import FileSelector, FileType  # noqa: PLC0415 - few inputs lie elsewhere

        def ask(files: FileSystem, name: str) -> list[tuple[list[str], int | None]]:
            selected = FileSelector(name, allow_not_found=True, recursive=recursive)
            return [
                (info.path.removeprefix(name).strip("/").split("/"), info.size if info.type == FileType.File else None)
                for info in files.get_file_info(selected)
            ]

        return [(self.joinpath(*names), size) for names, size in sorted(self._asked(ask), key=lambda found: found[0])]

    def open(self, mode: str = "r", buffering: int = -1, *_: Any, **__: Any) -> Any:
        """Open the file to read bytes; unbuffered it is arrow's own, which reads ranges."""
        if mode != "rb":
            raise OSError(errno.EROFS, "files elsewhere are opened to be read; they are written as a whole")
        file: Any = self._asked(lambda files, name: files.open_input_file(name), patient=True)
        return file if buffering == 0 else io.BufferedReader(file, BUFFER)

    def write_bytes(self, content: Any) -> int:
        """Write the file, which appears when it is whole, and return how many bytes it has."""
        given = memoryview(content)

        def ask(files: FileSystem, name: str) -> int:
            early = self.parts[0] in SEEN_EARLY
            to = f"{name}.{uuid4().hex}.tmp" if early else name
            with files.open_output_stream(to) as out:
                out.write(given)
            if early:
                _rename(files, to, name)
            return given.nbytes

        return self._asked(ask, patient=True, seconds=UPLOADS)

    def publish(self, target: RemotePath) -> None:
        """Let the file appear under another name in the same store, too; in Hadoop, instead."""
        own, early = "/".join(self.parts[2:]), self.parts[0] in SEEN_EARLY

        def ask(files: FileSystem, name: str) -> None:
            to = name.removesuffix(own) + "/".join(target.parts[2:])
            if early:
                _rename(files, name, to)
            else:
                files.copy_file(name, to)  # by the store itself

        self._asked(ask, patient=True, seconds=UPLOADS)

    def unlink(self, missing_ok: bool = False) -> None:  # noqa: FBT001, FBT002 - as `Path` has it
        """Remove the file."""
        try:
            self._asked(lambda files, name: files.delete_file(name), seconds=UPLOADS)
        except FileNotFoundError:
            if not missing_ok:
                raise
        except OSError:
            if self.exists():  # else only the mark of an empty folder could not be written
                raise

    def remove(self) -> None:
        """Remove the folder with all that is in it; it need not exist."""
        try:
            self._asked(lambda files, name: files.delete_dir(name), seconds=UPLOADS)
        except FileNotFoundError:
            pass
        except OSError:
            if any(path.is_file() for path, _ in self.listed(recursive=True)):  # else as above
                raise

    def refused(self) -> str:
        """Describe why it is no input. Raises OSError if it does not exist."""
        self.stat()
        return (
            "neither a file of events nor a folder of such; a broker's own directory or recording is read from a "
            "disk: copy it to one"
        )

    def _asked(
        self, ask: Callable[[FileSystem, str], Answer], *, patient: bool = False, seconds: float | None = None
    ) -> Answer:
        """Ask its file system, by the name that this knows the path by. Raises OSError.

        `patient`: retry a few times, because it answered a moment ago · `seconds`: to wait for an answer.
        """
        waits = WAITS if seconds is None else seconds
        scheme, place = self.parts[0].removesuffix(":"), self.parts[1]

        def wait() -> Answer:
            files, base = _file_system(scheme, place, _endpoint() if SCHEMES[scheme] is AWS else "", patient)
            return ask(files, "/".join([base, *self.parts[2:]]))

        try:
            return answer_within(wait, waits)
        except TimeoutError:
            raise OSError(errno.ETIMEDOUT, f"no answer within {waits:.0f} seconds") from None
        except FileNotFoundError:
            raise FileNotFoundError(errno.ENOENT, "no such file or directory") from None
        except Exception as error:  # noqa: BLE001 - pyarrow has many kinds, and each store its own
            raise OSError(errno.EIO, why(error, scheme)) from None


def access_problems(reads: Sequence[RemotePath], writes: Sequence[RemotePath]) -> list[str]:
    """Look at each file, and write one into each folder, where it stays; return a sentence for each failure."""
    found = []
    for path in (*reads, *writes):
        try:
            if path in writes:
                (path / f"probe-{uuid4().hex}").write_bytes(b"gapless")
            else:
                path.stat()
        except OSError as error:
            what = "written to" if path in writes else "read"
            found.append(f"{socket.gethostname()}: {shown(path)} cannot be {what} ({error.strerror})")
    return found


def _rename(files: FileSystem, name: str, to: str) -> None:
    if files.get_file_info(to).is_file:
        files.delete_file(to)
    files.move(name, to)


def _info(files: FileSystem, name: str) -> FileInfo:
    found: FileInfo = files.get_file_info(name)
    return found


def _fits(names: Sequence[str], pattern: Sequence[str]) -> bool:
    """True if nested folders and a file fit a pattern; hidden ones only if it says so."""
    if not names or not pattern:
        return not names and all(part == "**" for part in pattern)
    hidden = names[0].startswith(".")
    if pattern[0] == "**":
        return _fits(names, pattern[1:]) or (not hidden and _fits(names[1:], pattern))
    if hidden and not pattern[0].startswith("."):
        return False
    return fnmatchcase(names[0], pattern[0]) and _fits(names[1:], pattern[1:])


# -- file systems --------------------------------------------------------------------------------------------------


@cache
def _file_system(scheme: str, place: str, endpoint: str, patient: bool) -> tuple[FileSystem, str]:  # noqa: FBT001 - for the cache
    """Return the file system of a scheme, and its name of the place. Raises what pyarrow raises."""
    from pyarrow import fs  # noqa: PLC0415 - few inputs lie elsewhere

    if SCHEMES[scheme] is AWS:
        region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
        if not (region or endpoint):
            region = fs.resolve_s3_region(place)
        found: FileSystem = fs.S3FileSystem(
            region=region or "us-east-1",
            endpoint_override=endpoint or None,
            connect_timeout=5,
            request_timeout=10 if patient else 5,
            retry_strategy=fs.AwsStandardS3RetryStrategy(max_attempts=ATTEMPTS[patient]),
            allow_delayed_open=True,  # type: ignore[call-arg]  # a small file is one request
        )
        return found, place
    if SCHEMES[scheme] is GOOGLE:
        return fs.GcsFileSystem(retry_time_limit=timedelta(seconds=60 if patient else 10)), place
    if SCHEMES[scheme] is AZURE:
        found, base = fs.FileSystem.from_uri(f"{scheme}://{place}/")
        return found, base.rstrip("/")
    user, _, host = place.rpartition("@")
    name, _, port = host.partition(":")
    where = name if name == DEFAULT else f"{scheme}://{name}"
    return fs.HadoopFileSystem(where, int(port or 0), user=user or None), ""


def spoken_to() -> bool:
    """True if this process has used a store: then it has threads, which a fork would lose."""
    return _file_system.cache_info().currsize > 0


def _endpoint() -> str:
    """Return the endpoint of S3 if the environment or AWS configuration names another than Amazon's."""
    for name in ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"):
        if given := os.environ.get(name):
            return given
    config, profile = ConfigParser(interpolation=None), os.environ.get("AWS_PROFILE", "default")
    try:
        config.read(os.environ.get("AWS_CONFIG_FILE") or Path.home() / ".aws" / "config", encoding="utf-8")
    except (ConfigError, UnicodeDecodeError):
        return ""
    section = profile if profile == "default" else f"profile {profile}"
    return config.get(section, "endpoint_url", fallback="")


# -- what a store says when it says no -----------------------------------------------------------------------------

SECRET = re.compile("KEY|SECRET|TOKEN|PASSWORD|CREDENTIAL|SIGNATURE|CONNECTION_STRING", re.IGNORECASE)
"""Parts of the names of variables with secret values."""
MEANT = (
    (r"NO_SUCH_BUCKET|BucketNotFound|ContainerNotFound|specified bucket does not exist", "there is no such bucket"),
    (
        r"NETWORK_CONNECTION|curlCode|[Cc]ould(n.t| not) (connect|resolve)|[Cc]onnection refused",
        "no server answers there",
    ),
    (r"configured region|HTTP status 301", "the bucket is in another region: set AWS_REGION"),
    (
        r"MissingContentLength",
        "the store does not take requests with checksums: set AWS_REQUEST_CHECKSUM_CALCULATION=when_required",
    ),
    (r"libjvm|libhdfs", "Hadoop's libraries are not found: set JAVA_HOME, HADOOP_HOME and CLASSPATH, or copy it here"),
)
DENIED = (
    r"ACCESS_DENIED|SIGNATURE|ACCESS_KEY|TOKEN|HTTP status 40[013]|[Uu]nauthenticated|PermissionDenied|[Cc]redential"
)


def store_error(error: Exception, path: Path) -> str:
    """Describe a store's error that occurred while a file was read; empty if it is none of a store's."""
    remote = isinstance(error, OSError) and not isinstance(error, FileNotFoundError) and isinstance(path, RemotePath)
    meant = any(re.search(pattern, str(error)) for pattern in (*(pattern for pattern, _ in MEANT), "AWS Error"))
    return why(error, path.parts[0].removesuffix(":")) if remote and meant else ""


def why(error: Exception, scheme: str) -> str:
    """Describe a store's error in a sentence without credentials."""
    text = str(error)
    for pattern, meaning in MEANT:
        if re.search(pattern, text):
            return meaning
    if re.search(DENIED, text):
        return f"access is denied: {SCHEMES[scheme][2]}"
    for name, value in os.environ.items():
        if SECRET.search(name) and value:
            text = text.replace(value, "…")
    return shown((text.splitlines() or ["it does not say why"])[0])
