"""The interface of defenses: fit to the training texts, then correct every text before the tokenizer sees it."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import BeforeValidator

from tombola.errors import DamagedArtefact, TombolaError, UnknownName
from tombola.foundations.choices import Choice, Choices

DEFENSE = "defense.json"
"""The defense file of a ticket or a stage."""
FORMAT = 1

State = Mapping[str, Any]
"""The fitted state of a defense, as JSON."""


class FittedDefense(ABC):
    """Corrects texts. Equal fingerprints mean equal corrections."""

    @abstractmethod
    def correct(self, text: str) -> str:
        """Return the corrected text."""

    def forget(self) -> None:  # noqa: B027 - most defenses have no cache
        """Clear the cache of earlier texts; corrections stay the same."""

    @abstractmethod
    def parts(self) -> list[dict[str, Any]]:
        """Return the settings and state of each defense in order, as JSON."""

    @cached_property
    def fingerprint(self) -> str:
        """Hash of everything that determines the corrections."""
        return _fingerprint(self.parts())

    def save(self, folder: Path) -> None:
        """Write the defense into a folder."""
        content = {"format": FORMAT, "fingerprint": self.fingerprint, "defenses": self.parts()}
        text = json.dumps(content, ensure_ascii=False, separators=(",", ":"), sort_keys=True, allow_nan=False)
        (folder / DEFENSE).write_text(text, encoding="utf-8")


defenses: Choices[type[Defense]] = Choices(
    "defense", [f"tombola.defenses.{name}" for name in ("spelling", "unicode")]
)
"""Defenses by `kind`."""


class Defense(Choice, ABC):
    """Settings of a defense."""

    choices: ClassVar = defenses
    by_name: ClassVar[bool] = True

    @property
    def material(self) -> str | None:
        """The fingerprint of what it reads besides the training texts, such as a dictionary."""
        return None

    @abstractmethod
    def fit(self, texts: Iterable[str]) -> FittedDefense:
        """Fit the defense to the training texts."""

    @abstractmethod
    def restore(self, state: State) -> FittedDefense:
        """Restore the fitted defense from its state.

        Raises:
            ValueError: The state is not valid for this defense.
        """


class Chain(FittedDefense):
    """Several defenses, applied in order."""

    def __init__(self, links: Sequence[FittedDefense]) -> None:
        self.links = tuple(links)

    def correct(self, text: str) -> str:
        """Apply all defenses to the text."""
        for link in self.links:
            text = link.correct(text)
        return text

    def forget(self) -> None:
        """Clear the caches of all defenses."""
        for link in self.links:
            link.forget()

    def parts(self) -> list[dict[str, Any]]:
        """Return the settings and state of each defense in order."""
        return [part for link in self.links for part in link.parts()]


def fit_defenses(settings: Sequence[Defense], texts: Iterable[str]) -> Chain:
    """Fit defenses to the training texts, each to the output of those before it."""
    corrected = list(texts)
    links: list[FittedDefense] = []
    for defense in settings:
        links.append(defense.fit(corrected))
        if defense is not settings[-1]:
            corrected = [links[-1].correct(text) for text in corrected]
    return Chain(links)


def load_defense(folder: Path) -> Chain:
    """Read the defenses that `save` wrote into a folder."""
    path = folder / DEFENSE
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise TombolaError(f"{folder} has no {DEFENSE}") from None
    except (ValueError, RecursionError) as error:
        raise DamagedArtefact(f"{path} is not valid JSON ({error}): get it again.") from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        version = content.get("format") if isinstance(content, dict) else None
        raise TombolaError(f"{path} has format {version!r}; this version of tombola reads {FORMAT}")
    parts = content.get("defenses")
    if not isinstance(parts, list) or _fingerprint(parts) != content.get("fingerprint"):
        raise DamagedArtefact(f"{path} does not agree with its own fingerprint: it was damaged or changed.")
    links = []
    for part in parts:
        try:
            kind = part["settings"]["kind"]
            if kind not in defenses:
                raise UnknownName("defense", str(kind), defenses, where=str(path))
            links.append(Defense.choose(part["settings"]).restore(part["state"]))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise DamagedArtefact(f"{path} does not describe its defenses ({error}): get it again.") from None
    return Chain(links)


def _as_list(value: Any) -> Any:
    if value is None:
        return ()
    return value if isinstance(value, list | tuple) else [value]


DefenseList = Annotated[tuple[Defense, ...], BeforeValidator(_as_list)]
"""One defense, or several in order of application: `defend: [unicode, spelling]`."""


def _fingerprint(parts: Any) -> str:
    text = json.dumps(parts, ensure_ascii=False, sort_keys=True)
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
