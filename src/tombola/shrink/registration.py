"""Let `AutoModel….from_pretrained` read shrunk folders, without importing transformers early."""

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

WATCHED = "transformers.quantizers.auto"


def install() -> None:
    """Register the loader of shrunk models with transformers: now, or when transformers is imported."""
    if WATCHED in sys.modules:
        _register()
    elif not any(isinstance(finder, _Watch) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Watch())


def _register() -> None:
    import_module("tombola.shrink.quantizer")


class _Watch(MetaPathFinder):
    """Finds no modules itself, but registers our loader after the watched module is executed."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != WATCHED:
            return None
        others = (finder for finder in sys.meta_path if finder is not self)
        spec = next(filter(None, (finder.find_spec(name, path, target) for finder in others)), None)
        if spec is None or spec.loader is None:
            return spec
        execute = spec.loader.exec_module

        def execute_and_register(module: ModuleType) -> None:
            execute(module)
            _register()

        spec.loader.exec_module = execute_and_register  # type: ignore[method-assign]
        return spec
