"""English words with their frequencies, from the package symspellpy: 82,765 entries.

The list combines the frequencies of Google Books Ngrams (CC BY 3.0) with the words of SCOWL (its own permissive
licence). It is read from where symspellpy installs it; no other file of that package is used.
"""

from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from importlib.util import find_spec
from pathlib import Path

from tombola.errors import TombolaError

PACKAGE = "symspellpy"
FILE = "frequency_dictionary_en_82_765.txt"


@dataclass(frozen=True, eq=False)
class Dictionary:
    """Words of a language with their frequencies, and a hash of both."""

    counts: dict[str, int]
    fingerprint: str


@lru_cache(maxsize=1)
def english() -> Dictionary:
    """Return the English dictionary."""
    spec = find_spec(PACKAGE)
    path = Path(spec.origin).with_name(FILE) if spec is not None and spec.origin else None
    if path is None or not path.is_file():
        raise TombolaError(
            "The English dictionary of spelling correction comes with the package symspellpy: pip install "
            "'tombola[spelling]', or set dictionary: null to use only the words of the training texts."
        )
    return parse_dictionary(path.read_bytes())


def parse_dictionary(content: bytes) -> Dictionary:
    """Read lines of a word and its count."""
    rows = (line.split() for line in content.decode("utf-8-sig").splitlines())
    counts = {word: int(count) for word, count in rows}
    return Dictionary(counts, blake2b(content, digest_size=16).hexdigest())
