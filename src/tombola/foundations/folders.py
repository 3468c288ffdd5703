"""The user's folders: the cache, the store, and how to display paths."""

import os
import re
from pathlib import Path
from tempfile import gettempdir
from typing import Any


def cache_folder() -> Path:
    """Return the cache folder: TOMBOLA_CACHE, else `~/.cache/tombola`."""
    try:
        return Path(os.environ.get("TOMBOLA_CACHE") or "~/.cache/tombola").expanduser()
    except RuntimeError:  # a user without a home folder, as in some containers
        return Path(gettempdir()) / f"tombola-{os.getuid()}"


def store_address(store: str | None = None) -> str:
    """Return the folder or URL of the store: the argument, else TOMBOLA_STORE, else `~/.cache/tombola/store`."""
    return store or os.environ.get("TOMBOLA_STORE") or "~/.cache/tombola/store"


def public_name(name: str) -> str:
    """Return the name of a model, task or file for publication: the last part of a local path, anything else unchanged.

    A split keeps the file of its task: `task.yaml/validation`.
    """
    local = name.startswith(("/", "~", ".")) or re.match(r"[A-Za-z]:[\\/]", name) or os.path.exists(name)
    if not local:
        return name
    parts = re.split(r"[\\/]", name.rstrip("/\\"))
    task = next((place for place, part in enumerate(parts) if part.endswith((".yaml", ".yml"))), -1)
    return "/".join(parts[task:])


def by_name(content: Any) -> Any:
    """Return settings for readers with other folders: every path is reduced to its last part."""
    if isinstance(content, dict):
        return {by_name(key): by_name(value) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return type(content)(map(by_name, content))
    return public_name(content) if isinstance(content, str) and not re.search(r"\s", content) else content


def portable(content: Any) -> Any:
    """Return settings for publication: paths without the user's name, and none from the root of the disk.

    A path below the home folder begins with `~`; any other absolute path becomes relative to the current folder.
    """
    if isinstance(content, dict):
        return {portable(key): portable(value) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return type(content)(map(portable, content))
    if not isinstance(content, str):
        return content
    shown = with_tilde(content)
    if (
        not os.path.isabs(shown)
        or "\n" in shown
        or not any(map(os.path.exists, (shown, os.path.dirname(shown))))
    ):
        return shown
    return os.path.relpath(shown)


def publishable(content: Any) -> Any:
    """Return settings for a page that is never run: paths outside the current folder are reduced to their last part.

    Paths that begin with `~` or lie below the current folder stay.
    """
    if isinstance(content, dict):
        return {publishable(key): publishable(value) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return type(content)(map(publishable, content))
    shown = portable(content)
    leads_out = isinstance(shown, str) and re.match(r"(\.\.[\\/]|/|[A-Za-z]:[\\/])\S*$", shown)
    return public_name(shown) if leads_out else shown


def absolute(content: Any) -> Any:
    """Return settings with absolute paths, so that they mean the same from any folder."""
    if isinstance(content, dict):
        return {absolute(key): absolute(value) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return type(content)(map(absolute, content))
    if not isinstance(content, str) or not re.search(r"^[~.]|[\\/]", content) or "\0" in content:
        return content
    full = os.path.abspath(os.path.expanduser(content))
    return full if os.path.exists(full) else content


def with_tilde(text: str) -> str:
    """Return the text with the user's home folder written as `~`, so that it can be shown to others."""
    try:
        home = Path.home()
    except RuntimeError:  # a user without a home folder
        return text
    for folder in {str(home), str(home.resolve())} - {"/"}:
        text = re.sub(rf"{re.escape(folder)}(?![\w.-])", "~", text)
    return text
