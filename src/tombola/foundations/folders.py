"""Folders of the user: where computed things are cached, where the store is, and how paths are shown."""

import os
import re
from pathlib import Path
from tempfile import gettempdir
from typing import Any


def cache_folder() -> Path:
    """The folder for what can be computed again: TOMBOLA_CACHE, else `~/.cache/tombola`."""
    try:
        return Path(os.environ.get("TOMBOLA_CACHE") or "~/.cache/tombola").expanduser()
    except RuntimeError:  # a user without a home folder, as in some containers
        return Path(gettempdir()) / f"tombola-{os.getuid()}"


def store_address(store: str | None = None) -> str:
    """The folder or URL of the store: the argument, else TOMBOLA_STORE, else `~/.cache/tombola/store`."""
    return store or os.environ.get("TOMBOLA_STORE") or "~/.cache/tombola/store"


def public_name(name: str) -> str:
    """A model, a task or a file as others may read it: of a local path only the last part, all else as it is."""
    local = name.startswith(("/", "~", ".")) or re.match(r"[A-Za-z]:[\\/]", name) or Path(name).exists()
    return re.split(r"[\\/]", name.rstrip("/\\"))[-1] if local else name


def portable(content: Any) -> Any:
    """Settings as they may be published: paths without the user's name, and none from the root of the disk.

    A path below the home folder begins with `~`, any other absolute one leads there from the current folder.
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


def with_tilde(text: str) -> str:
    """The text with the user's home folder written as `~`, so that it can be shown to others."""
    try:
        home = Path.home()
    except RuntimeError:  # a user without a home folder
        return text
    for folder in {str(home), str(home.resolve())} - {"/"}:
        text = re.sub(rf"{re.escape(folder)}(?![\w.-])", "~", text)
    return text
