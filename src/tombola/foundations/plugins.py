"""Plugins: other people's modules that register searches, attacks, losses, metrics and the like.

A plugin is a Python file or an importable module that a recipe or the command line names, or that an installed
package offers as an entry point of the group `tombola.plugins`. What it registers works like everything built in. Its
content is part of the identity of the stages that use it, and of no others.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from hashlib import blake2b
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

from pydantic import BaseModel

from tombola.errors import PluginError, TombolaError
from tombola.foundations.registry import Registry, is_builtin

GROUP = "tombola.plugins"


@dataclass(frozen=True)
class Plugin:
    """A loaded plugin: the user's name for it, its module, and a hash of its code."""

    name: str
    module: str
    fingerprint: str
    path: str | None = None
    """The path of a single file on the machine that first loaded it."""
    source: str | None = field(default=None, repr=False)
    """The code of a single file, so that workers on other machines can run it too."""


_loaded: dict[str, Plugin] = {}
"""Plugins by the name of their module."""


def load_plugins(names: Iterable[str]) -> list[Plugin]:
    """Import plugins, each once. A changed file is imported again.

    Args:
        names: Paths of Python files (`my_methods.py`) or names of importable modules (`my_package.methods`).
    """
    return [
        _load_file(find_plugin_file(name)) if name.endswith(".py") else _load_module(name) for name in names
    ]


def find_plugin_file(name: str, base: Path | None = None) -> Path:
    """Return the path of a plugin's file, relative to `base` or the current folder."""
    path = Path(name).expanduser()
    if base is not None and not path.is_absolute() and (base / path).is_file():
        return base / path
    if not path.is_file():
        beside = f" beside the recipe ({base}) or" if base is not None and base != Path() else ""
        raise PluginError(f"plugin {name}: there is no such file{beside} in the current folder")
    return path


@cache
def load_installed_plugins() -> tuple[Plugin, ...]:
    """Import the plugins that installed packages offer."""
    return tuple(_load_module(entry.value.partition(":")[0]) for entry in entry_points(group=GROUP))


def loaded_plugins() -> list[Plugin]:
    """Return the plugins of this process, so that a worker can load them too."""
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
    """Return the fingerprints, with names, of all external code that some objects depend on.

    Settings are searched through. Functions, classes and registered entries count by the module that defines and
    the one that registers them; registered data (a model family) counts by its own content.
    """
    if not Registry.is_extended():
        return {}
    return dict(sorted({pair for thing in objects for pair in _outside(thing)}))


def _outside(thing: object) -> Iterator[tuple[str, str]]:
    """Yield the (fingerprint, name) of everything outside the package that an object depends on."""
    if isinstance(thing, Mapping):
        for value in thing.values():
            yield from _outside(value)
    elif isinstance(thing, list | tuple | set | frozenset):
        for value in thing:
            yield from _outside(value)
    elif isinstance(thing, BaseModel) and (home := Registry.home_of(thing)) is not None:
        if not is_builtin(home):
            yield _hash([thing.model_dump_json().encode()]), str(getattr(thing, "name", home))
    else:
        modules = {module for module in _modules(thing) if not is_builtin(module)}
        yield from (_described(module) for module in modules)
        if isinstance(thing, BaseModel):
            for name in type(thing).model_fields:
                yield from _outside(getattr(thing, name))


def _modules(thing: object) -> Iterator[str]:
    """Yield the modules that define and register an object, or its class."""
    if isinstance(thing, partial):
        thing = thing.func
    if (home := Registry.home_of(thing)) is not None:
        yield home
    if isinstance(thing, BaseModel):
        thing = type(thing)
    if isinstance(thing, type):
        for base in thing.__mro__:
            if (home := Registry.home_of(base)) is not None:
                yield home
            if issubclass(base, BaseModel) and base is not BaseModel:
                yield base.__module__
    elif callable(thing) and hasattr(thing, "__code__"):
        yield thing.__module__


def _described(module: str) -> tuple[str, str]:
    """Return the fingerprint and name of a module: those of its plugin, else of its own file.

    A plugin inside a package stands for the whole package, whose other modules may register things too.
    """
    package = module.partition(".")[0]
    whole = getattr(sys.modules.get(package), "__file__", None) is not None
    for name, plugin in _loaded.items():
        if module == name or module.startswith(f"{name}.") or (whole and name.startswith(f"{package}.")):
            return plugin.fingerprint, plugin.name
    file = getattr(sys.modules.get(module), "__file__", None)
    if file is None or not Path(file).is_file():
        raise PluginError(
            f"the recipe uses something registered by {module!r}, whose code is not in a file: put it in a file and "
            "list that under `plugins`, so that stored results reflect its changes"
        )
    return _hash([Path(file).read_bytes()]), module


def _load_file(path: Path) -> Plugin:
    try:
        source = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise PluginError(f"plugin {path}: cannot be read ({error})") from None
    fingerprint = _hash([source.encode()])
    module = f"tombola_plugin_{path.stem}_{fingerprint[:8]}"
    if module not in _loaded:
        plugin = Plugin(path.name, module, fingerprint, str(path.resolve()), source)
        for older in [loaded for loaded in _loaded.values() if loaded.path == plugin.path]:
            forget(older)
        _execute(plugin)
    return _loaded[module]


def _load_module(name: str) -> Plugin:
    if name in _loaded:
        return _loaded[name]
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        spec = None
    if spec is None or spec.origin is None:
        raise PluginError(f"plugin {name}: is neither a Python file nor an importable module")
    module = _guarded(name, partial(import_module, name))
    plugin = Plugin(name, module.__name__, _hash(file.read_bytes() for file in _files_of(name)))
    _loaded[plugin.module] = plugin
    return plugin


def _files_of(module: str) -> list[Path]:
    """Return the files of a module's package, or the module's own file if it has none."""
    for name in (module.partition(".")[0], module):
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.origin is not None and spec.has_location:
            path = Path(spec.origin)
            return sorted(path.parent.rglob("*.py")) if spec.submodule_search_locations else [path]
    raise PluginError(f"plugin {module}: its code is not in a file, so changes to it cannot be detected")


def _execute(plugin: Plugin) -> None:
    """Run a plugin's source as a separate module."""
    assert plugin.source is not None
    source = plugin.source
    module = ModuleType(plugin.module)
    module.__file__ = plugin.path or plugin.name
    sys.modules[plugin.module] = module

    def run() -> None:
        exec(compile(source, module.__file__ or plugin.name, "exec"), module.__dict__)

    try:
        _guarded(plugin.name, run)
    except BaseException:
        forget(plugin)
        raise
    _loaded[plugin.module] = plugin


def _guarded(name: str, load: Callable[[], Any]) -> Any:
    try:
        return load()
    except TombolaError as error:
        raise PluginError(f"plugin {name}: {error}") from error
    except Exception as error:
        raise PluginError(f"plugin {name}: {type(error).__name__}: {error}") from error


def forget(plugin: Plugin) -> None:
    """Remove a plugin and everything that it registered."""
    Registry.forget(plugin.module)
    sys.modules.pop(plugin.module, None)
    _loaded.pop(plugin.module, None)


def _hash(contents: Iterable[bytes]) -> str:
    digest = blake2b(digest_size=16)
    for content in contents:
        digest.update(blake2b(content).digest())
    return digest.hexdigest()
