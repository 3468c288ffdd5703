from tests.training.conftest import _frozen_modules

__all__ = ["_frozen_modules"]
