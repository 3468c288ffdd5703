"""The checks of `tombola doctor`: versions, hardware, precision, store, optional packages, environment."""

import os
import platform
import re
import shutil
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path

from tombola.foundations.folders import cache_folder, store_address, with_tilde
from tombola.foundations.hardware import machine
from tombola.foundations.hardware.precision import probe_precision
from tombola.foundations.hardware.verdicts import ENVIRONMENT

EXTRAS = {
    "minilm": "the embedded model",
    "hub": "tasks from the Hugging Face hub",
    "onnx": "export to ONNX",
    "spelling": "spelling correction, as in compress",
    "ray": "studies on a Ray cluster",
    "s3": "stores at s3:// addresses",
    "frames": "results as data frames, Parquet files",
}
"""The optional extras and their purpose; `pyproject.toml` lists their packages."""

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
VARIABLES = ("HF_HUB_OFFLINE", "OMP_NUM_THREADS", "ONEDNN_MAX_CPU_ISA", "ATEN_CPU_CAPABILITY")
LITTLE_DISK, LITTLE_MEMORY = 2e9, 2e9  # bytes
SECRET = re.compile(r"TOKEN|SECRET|PASSWORD|KEY", re.IGNORECASE)
WIDTH = 80


@dataclass(frozen=True)
class Check:
    """One check and its result.

    Attributes:
        name: The subject of the check.
        value: The result.
        note: What it means, or what to do about it.
        ok: False if something needs fixing.
    """

    name: str
    value: str
    note: str = ""
    ok: bool = True


def examine(store: str | None = None) -> list[Check]:
    """Check everything that runs depend on. Never raises: a check that fails says why.

    Args:
        store: Folder or URL of the store; TOMBOLA_STORE or the default store if not given.
    """
    checks: list[Check] = []
    for name, look in (
        ("tombola", _tombola),
        ("python", _python),
        ("packages", _required),
        ("device", _device),
        ("cores", _cores),
        ("memory", _memory),
        ("precision", _precision),
        ("store", lambda: _store(store_address(store))),
        ("cache", _cache),
        ("optional packages", _optional),
        ("Chromium", _chromium),
        ("environment", _environment),
    ):
        checks += _attempt(name, look)
    return checks


def _attempt(name: str, look: Callable[[], Iterator[Check]]) -> list[Check]:
    checks: list[Check] = []
    try:
        checks.extend(look())
    except Exception as error:
        checks.append(Check(name, "could not be checked", f"{type(error).__name__}: {error}", ok=False))
    return [replace(check, value=_shareable(check.value), note=_shareable(check.note)) for check in checks]


def _shareable(text: str) -> str:
    """Return the text on one line, without the user's home folder and credentials in URLs."""
    return " ".join(with_tilde(re.sub(r"://[^/@\s]+@", "://***@", text)).split())


def _tombola() -> Iterator[Check]:
    yield Check("tombola", metadata.version("tombola"))


def _python() -> Iterator[Check]:
    yield Check("python", platform.python_version())


def _required() -> Iterator[Check]:
    """Yield checks of the required packages, and of tokenizers, a dependency of transformers."""
    for name, specifier, extra in [*_requirements(), ("tokenizers", "", None)]:
        if extra is None:
            yield _package(name, specifier) or Check(
                name, "not installed", f"pip install '{name}{specifier}'", False
            )


def _optional() -> Iterator[Check]:
    listed = list(_requirements())
    for extra, purpose in EXTRAS.items():
        for name, specifier, owner in listed:
            if owner == extra:
                advice = f"for {purpose}: pip install 'tombola[{extra}]'"
                yield _package(name, specifier) or Check(name, "not installed", advice)


def _package(name: str, specifier: str) -> Check | None:
    from packaging.specifiers import SpecifierSet

    try:
        version = metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
    if SpecifierSet(specifier).contains(version, prereleases=True):
        return Check(name, version)
    return Check(name, version, f"Tombola needs {specifier}: pip install '{name}{specifier}'", ok=False)


def _requirements() -> Iterator[tuple[str, str, str | None]]:
    """Yield name, version specifier and extra (None: always required) of each package in Tombola's metadata."""
    from packaging.requirements import Requirement

    for line in metadata.requires("tombola") or []:
        needed = Requirement(line)
        extra = re.search(r"""extra == ['"]([\w-]+)['"]""", line)
        yield needed.name, str(needed.specifier), extra[1] if extra else None


def _device() -> Iterator[Check]:
    yield Check("processor", machine.processor().model)
    yield Check("device", machine.device_name())


def _cores() -> Iterator[Check]:
    import torch

    available, threads = machine.cores(), torch.get_num_threads()
    note = f"torch uses {threads} threads" if threads != available else ""
    if threads > available:
        note += f", more than there are cores: set OMP_NUM_THREADS={available}"
    yield Check("cores", str(available), note, ok=threads <= available)


def _memory() -> Iterator[Check]:
    memory = machine.memory()
    total = f"{memory.total / machine.GB:.1f} GB"
    if memory.available is None:
        yield Check("memory", total)
        return
    enough = memory.available >= LITTLE_MEMORY
    note = f"{memory.available / machine.GB:.1f} GB available"
    yield Check("memory", total, note if enough else f"only {note}: close other programs", ok=enough)


def _precision() -> Iterator[Check]:
    verdict = probe_precision()
    runs = verdict.fp32_seconds is not None or verdict.crashed is None
    yield Check("precision", verdict.precision, verdict.reason, ok=runs)


def _store(address: str) -> Iterator[Check]:
    if "://" in address:
        from fsspec import get_filesystem_class

        protocol = address.partition("://")[0]
        try:
            get_filesystem_class(protocol)
        except (ImportError, ValueError) as error:
            advice = "pip install 'tombola[s3]'" if protocol == "s3" else str(error)
            yield Check("store", address, f"{protocol}:// cannot be opened: {advice}", ok=False)
            return
        yield Check("store", address, "remote: free space unknown")
        return
    yield _folder("store", Path(address).expanduser())


def _cache() -> Iterator[Check]:
    yield _folder("cache", cache_folder())


def _folder(name: str, path: Path) -> Check:
    """Check a folder that runs write to, which may not exist yet."""
    existing = machine.existing_part(path)
    if not existing.is_dir() or not os.access(existing, os.W_OK | os.X_OK):
        variable = f"TOMBOLA_{name.upper()}"
        return Check(name, str(path), f"cannot be written: set {variable} to another folder", ok=False)
    free = machine.free_disk(existing)
    note = f"{free / machine.GB:.1f} GB free"
    return Check(name, str(path), note if free >= LITTLE_DISK else f"only {note}", ok=free >= LITTLE_DISK)


def _chromium() -> Iterator[Check]:
    path = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    yield Check("Chromium", path or "not found", "" if path else "only needed by tests of the report")


def _environment() -> Iterator[Check]:
    names = [*VARIABLES, *(name for name in ENVIRONMENT if name in os.environ and name not in VARIABLES)]
    names += sorted(name for name in os.environ if name.startswith("TOMBOLA_"))
    for name in names:
        value = os.environ.get(name)
        hidden = value is not None and SECRET.search(name)
        offline = name == "HF_HUB_OFFLINE" and (value or "").upper() in ("1", "ON", "YES", "TRUE")
        note = "models and data come only from this machine" if offline else ""
        yield Check(name, "not set" if value is None else "***" if hidden else value or "empty", note)


def render(checks: list[Check]) -> list[str]:
    """Render the checks as plain text for a terminal of 80 columns; `!` marks what needs fixing."""
    indent = 2 + max((len(check.name) for check in checks), default=0) + 2
    lines = []
    for check in checks:
        text = f"{check.value} ({check.note})" if check.note else check.value
        first = f"{' ' if check.ok else '!'} {check.name}".ljust(indent)
        wrapped = textwrap.wrap(text, WIDTH - indent, break_long_words=False, break_on_hyphens=False)
        lines += [
            (first if number == 0 else " " * indent) + line for number, line in enumerate(wrapped or ["-"])
        ]
    return lines
