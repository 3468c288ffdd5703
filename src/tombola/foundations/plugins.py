"""Plugins: other people's modules that register searches, attacks, losses, metrics and the like.

A plugin is a Python file or an importable module that a recipe or the command line names, or that an installed
package offers as an entry point of the group `tombola.plugins`. What it registers is used like everything that comes
with the package, and its content is part of the identity of every stage that uses it.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from hashlib import blake2b
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

from pydantic import BaseModel

from tombola.errors import PluginError, TombolaError
from tombola.foundations.registry import Registry

GROUP = "tombola.plugins"


@dataclass(frozen=True)
class Plugin:
    """A loaded plugin: what the user called it, its module, and a hash of its code."""

    name: str
    module: str
    fingerprint: str
    source: str | None = field(default=None, repr=False)
    """The code of a single file, so that workers on other machines can run it too."""


_loaded: dict[str, Plugin] = {}
"""Plugins by the name of their module."""


def load_plugins(names: Iterable[str], base: Path | None = None) -> list[Plugin]:
    """Import plugins, each once.

    Args:
        names: Paths of Python files (`my_methods.py`) or names of importable modules (`my_package.methods`).
        base: The folder that relative paths are looked up in, besides the current one: that of the recipe.
    """
    return [_load_file(name, base) if name.endswith(".py") else _load_module(name) for name in names]


def load_installed_plugins() -> list[Plugin]:
    """Import the plugins that installed packages offer."""
    return [_load_module(entry.value.partition(":")[0]) for entry in entry_points(group=GROUP)]


def loaded_plugins() -> list[Plugin]:
    """The plugins of this process, for a worker to load too."""
    return list(_loaded.values())


def adopt(plugins: Iterable[Plugin]) -> None:
    """Load another process's plugins in this one."""
    for plugin in plugins:
        if plugin.module in _loaded:
            continue
        if plugin.source is None:
            _load_module(plugin.module)
        else:
            _execute(plugin)


def plugins_of(*objects: object) -> dict[str, str]:
    """The fingerprints, by name, of the plugins whose code is behind some objects.

    Settings are searched through; functions and classes count by the module that defines them.
    """
    if not _loaded:
        return {}
    used = {_loaded[module] for thing in objects for module in _modules(thing) if module in _loaded}
    return {plugin.name: plugin.fingerprint for plugin in sorted(used, key=lambda one: one.name)}


def _modules(thing: object) -> Iterator[str]:
    """The modules that define an object, or what is inside it."""
    if isinstance(thing, type) or callable(thing):
        yield str(getattr(thing, "__module__", ""))
    elif isinstance(thing, Mapping):
        for value in thing.values():
            yield from _modules(value)
    elif isinstance(thing, list | tuple | set | frozenset):
        for value in thing:
            yield from _modules(value)
    else:
        yield type(thing).__module__
        if isinstance(thing, BaseModel):
            for name in type(thing).model_fields:
                yield from _modules(getattr(thing, name))


def _load_file(name: str, base: Path | None) -> Plugin:
    path = Path(name).expanduser()
    if base is not None and not path.is_absolute() and (base / path).is_file():
        path = base / path
    if not path.is_file():
        raise PluginError(f"plugin {name}: there is no such file")
    try:
        source = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise PluginError(f"plugin {name}: cannot be read ({error})") from None
    fingerprint = _hash([source.encode()])
    plugin = Plugin(path.name, f"tombola_plugin_{path.stem}_{fingerprint[:8]}", fingerprint, source)
    if plugin.module not in _loaded:
        for older in [one for one in _loaded.values() if one.name == plugin.name and one.source is not None]:
            _forget(older)
        _execute(plugin, path)
    return _loaded[plugin.module]


def _load_module(name: str) -> Plugin:
    if name in _loaded:
        return _loaded[name]
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        spec = None
    if spec is None or spec.origin is None:
        raise PluginError(f"plugin {name}: neither a Python file nor a module that can be imported")
    module = _guarded(name, partial(import_module, name))
    files = (
        sorted(Path(spec.origin).parent.rglob("*.py")) if spec.submodule_search_locations else [spec.origin]
    )
    plugin = Plugin(name, module.__name__, _hash(Path(file).read_bytes() for file in files))
    _loaded[plugin.module] = plugin
    return plugin


def _execute(plugin: Plugin, path: Path | None = None) -> None:
    """Run a plugin's source as a module of its own."""
    assert plugin.source is not None
    source = plugin.source
    module = ModuleType(plugin.module)
    module.__file__ = str(path) if path else f"<plugin {plugin.name}>"
    sys.modules[plugin.module] = module

    def run() -> None:
        exec(compile(source, module.__file__ or plugin.name, "exec"), module.__dict__)

    try:
        _guarded(plugin.name, run)
    except BaseException:
        _forget(plugin)
        raise
    _loaded[plugin.module] = plugin


def _guarded(name: str, load: Callable[[], Any]) -> Any:
    try:
        return load()
    except TombolaError:
        raise
    except Exception as error:
        raise PluginError(f"plugin {name}: {type(error).__name__}: {error}") from error


def _forget(plugin: Plugin) -> None:
    """Take out what an older version of a plugin registered."""
    Registry.forget(plugin.module)
    sys.modules.pop(plugin.module, None)
    _loaded.pop(plugin.module, None)


def _hash(contents: Iterable[bytes]) -> str:
    digest = blake2b(digest_size=16)
    for content in contents:
        digest.update(blake2b(content).digest())
    return digest.hexdigest()
