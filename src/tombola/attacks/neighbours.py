"""A table of each word's nearest neighbours by cosine, computed once and cached on disk."""

import logging
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from hashlib import blake2b, file_digest
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tombola.attacks.resources import TABLE_WIDTH
from tombola.augmentations.base import Resources
from tombola.errors import DataError
from tombola.foundations.folders import cache_folder
from tombola.foundations.paths import temporary_beside
from tombola.models.finding import find_model
from tombola.models.loading import load_tokenizer
from tombola.words.lexicon import bundled

logger = logging.getLogger(__name__)

BLOCK = 1024  # rows of the similarity matrix that are in memory at once
EMBEDDED_WORD = re.compile(r"[a-z]{2,}")
# At 0.30 (for 0.5) a word has 19 neighbours on average, and 82 % of PPDB's synonym pairs pass.
EMBEDDED_SCALE = 0.6


class Vectors(NamedTuple):
    """Words and their vectors (words, dimensions), in file order."""

    words: list[str]
    matrix: np.ndarray


@dataclass(frozen=True, eq=False)
class Neighbours:
    """The nearest words of each word of a vocabulary, with their cosines, nearest first.

    The attacks were published with counter-fitted vectors, in which antonyms are far apart. For other vectors, `scale`
    converts the minimum cosines that were published, and `opposites` names the pairs of words to leave out.
    """

    words: list[str]
    nearest: np.ndarray
    cosines: np.ndarray
    source: str
    scale: float = 1.0
    opposites: Callable[[str, str], bool] | None = None

    @cached_property
    def _rows(self) -> dict[str, int]:
        return {word: row for row, word in enumerate(self.words)}

    def of(self, word: str, k: int, at_least: float = -1.0) -> list[str]:
        """Return those of the `k` nearest words that have a cosine of `at_least` this and do not mean the opposite.

        There are none for a word without a vector.
        """
        row = self._rows.get(word.lower())
        if row is None:
            return []
        near = zip(self.nearest[row, :k].tolist(), self.cosines[row, :k].tolist(), strict=True)
        similar = [self.words[i] for i, cosine in near if cosine >= at_least * self.scale]
        return [other for other in similar if not (self.opposites and self.opposites(word, other))]


def neighbours_of(path: str | Path, k: int) -> Neighbours:
    """Return the table for a word-vector file: text (word2vec, GloVe, counter-fitted) or .npz."""
    path = Path(path).expanduser()
    if not path.is_file():
        raise DataError(
            f"{path}: no such word-vector file. Give a text file with a word and its numbers on each line "
            "(GloVe, counter-fitted vectors) or an .npz with the arrays `words` and `vectors`."
        )
    read = read_npz if path.suffix == ".npz" else read_text
    with path.open("rb") as file:
        content = file_digest(file, "blake2b").hexdigest()
    return kept_table(content, k, path.name, lambda: read(path))


def embedded_neighbours(k: int) -> Neighbours:
    """Return the bundled table, from MiniLM's input embeddings of the whole words in its vocabulary.

    `good` and `bad` are near each other there, so the antonyms of WordNet are left out.
    """
    minilm = find_model("minilm")

    def read() -> Vectors:
        from safetensors import safe_open

        vocabulary = load_tokenizer(minilm.folder).get_vocab()
        rows = {token: row for token, row in vocabulary.items() if EMBEDDED_WORD.fullmatch(token)}
        words = sorted(rows, key=rows.__getitem__)
        with safe_open(minilm.folder / "model.safetensors", "np") as tensors:
            matrix = tensors.get_tensor("embeddings.word_embeddings.weight")
        return Vectors(words, matrix[[rows[word] for word in words]])

    table = kept_table(minilm.fingerprint, k, "MiniLM input embeddings without WordNet's antonyms", read)
    return replace(table, scale=EMBEDDED_SCALE, opposites=bundled().are_opposites)


@lru_cache(maxsize=1)
def bundled_neighbours() -> Neighbours:
    """Return the bundled table as wide as attacks need it, loaded once."""
    return embedded_neighbours(TABLE_WIDTH)


def bundled_words() -> Resources:
    """Return the bundled lexicon and neighbours, for augmentations."""
    return Resources(bundled(), bundled_neighbours)


def kept_table(content: str, k: int, source: str, read: Callable[[], Vectors]) -> Neighbours:
    """Load the table for `content` from the cache, or compute it from `read()`."""
    from safetensors.numpy import save_file

    key = blake2b(f"neighbours 2 {content} {k}".encode(), digest_size=12).hexdigest()
    path = cache_folder() / f"neighbours-{key}.safetensors"
    table = _kept(path)
    if table is None:
        words, matrix = read()
        logger.info("computing the %d nearest neighbours of %d words of %s, once", k, len(words), source)
        nearest, cosines = nearest_rows(matrix, k)
        letters = np.frombuffer("\n".join(words).encode(), dtype=np.uint8)
        table = {"words": letters, "nearest": nearest, "cosines": cosines}
        unfinished = temporary_beside(path)
        save_file(table, unfinished, {"checksum": _table_hash(table)})
        unfinished.rename(path)
    words = table["words"].tobytes().decode().split("\n")
    return Neighbours(words, table["nearest"], table["cosines"], source)


def _kept(path: Path) -> dict[str, np.ndarray] | None:
    """Load a table from a cache file; None if the file is missing or damaged, so that it is recomputed."""
    from safetensors import SafetensorError, safe_open

    if not path.is_file():
        return None
    try:
        with safe_open(path, framework="numpy") as file:
            table = {name: file.get_tensor(name) for name in ("words", "nearest", "cosines")}
            if (file.metadata() or {}).get("checksum") == _table_hash(table):
                return table
    except (OSError, SafetensorError, ValueError, TypeError):
        pass
    logger.warning("%s was damaged and is computed again", path)
    return None


def _table_hash(table: dict[str, np.ndarray]) -> str:
    digest = blake2b(digest_size=16)
    for name, array in sorted(table.items()):
        digest.update(f"{name} {array.dtype} {array.shape}".encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


def nearest_rows(matrix: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Return indices and cosines of the `k` nearest other rows of each row, in blocks, never as an n × n matrix."""
    import torch

    unit = torch.nn.functional.normalize(torch.from_numpy(np.asarray(matrix, dtype=np.float32)), dim=1)
    k = min(k, len(unit) - 1)
    nearest = np.empty((len(unit), k), dtype=np.int32)
    cosines = np.empty((len(unit), k), dtype=np.float32)
    for start in range(0, len(unit), BLOCK):
        block = unit[start : start + BLOCK] @ unit.T
        rows = torch.arange(len(block))
        block[rows, rows + start] = -torch.inf
        best = block.topk(k, dim=1)
        nearest[start : start + BLOCK] = best.indices.numpy()
        cosines[start : start + BLOCK] = best.values.numpy()
    return nearest, cosines


def read_text(path: Path) -> Vectors:
    """Read word vectors from lines of a word and its numbers, skipping word2vec's header."""
    words: list[str] = []
    rows: list[np.ndarray] = []
    with path.open(encoding="utf-8") as file:
        for number, line in enumerate(file, start=1):
            word, *values = line.rstrip().split(" ")
            if number == 1 and len(values) == 1:
                continue
            extra = len(values) - len(rows[0]) if rows else 0  # GloVe has words with spaces: `. . .`
            if extra > 0 and not _is_number(values[extra - 1]):
                word, values = " ".join([word, *values[:extra]]), values[extra:]
            try:
                row = np.array(values, dtype=np.float32)
            except ValueError:
                raise DataError(f"{path}:{number}: expected a word and its numbers.") from None
            if rows and len(row) != len(rows[0]):
                raise DataError(
                    f"{path}:{number}: {len(row)} numbers, but the lines before have {len(rows[0])}."
                )
            words.append(word)
            rows.append(row)
    if len(rows) < 2:
        raise DataError(f"{path}: contains no word vectors.")
    return Vectors(words, np.stack(rows))


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def read_npz(path: Path) -> Vectors:
    """Read word vectors from the arrays `words` and `vectors`, without pickles."""
    try:
        with np.load(path, allow_pickle=False) as arrays:
            words, matrix = arrays["words"].tolist(), arrays["vectors"]
    except (KeyError, ValueError, OSError) as error:
        raise DataError(f"{path}: expected the arrays `words` (text) and `vectors` ({error}).") from None
    if matrix.ndim != 2 or len(words) != len(matrix) or len(words) < 2:
        raise DataError(f"{path}: {len(words)} words do not match vectors of shape {matrix.shape}.")
    return Vectors([str(word) for word in words], matrix)
