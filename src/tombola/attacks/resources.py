"""What attacks draw on besides the model: lexicon, word neighbours, sentence encoder, masked LM. Loaded when needed."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from tombola.errors import ModelError, TombolaError
from tombola.foundations.checksums import checksum
from tombola.foundations.folders import public_name
from tombola.words.lexicon import Lexicon, bundled, is_english, read_lexicon

if TYPE_CHECKING:
    from tombola.attacks.base import Attack
    from tombola.attacks.encoder import SentenceEncoder
    from tombola.attacks.masked_lm import MaskedLM
    from tombola.attacks.neighbours import Neighbours

ENCODER = "minilm"
"""The sentence encoder that comes with the package."""
HOW = {
    "lexicon": "a lexicon (parts of speech, synonyms, stop words) with --lexicon FILE",
    "vectors": "word vectors with --vectors FILE",
    "encoder": "a sentence encoder with --encoder MODEL",
}
"""How each resource is given that comes with the package for English alone."""
TABLE_WIDTH = 50  # neighbours kept of each word: what TextFooler asks for, the most of any attack


class MissingResource(TombolaError):
    """An attack needs something that was not given and that does not come with the package."""


@dataclass(eq=False)
class Resources:
    """Where an attack's resources come from. By default all are embedded, except a masked LM, which must be given.

    `vectors`: a file of word vectors (counter-fitted ones are what TextFooler was published with).
    `encoder`: a sentence encoder, mean-pooled (None: similarity is neither demanded of nor measured on the texts,
    for attacks that do without). `mlm`: a masked language model, for BERT-Attack. Both are named like any model:
    embedded, a folder, or a hub id. `words`: a lexicon of the user's (`read_lexicon`). What is embedded is English, and
    is not used for a `language` that is another.
    """

    vectors: str | Path | None = None
    encoder: str | Path | None = ENCODER
    mlm: "str | Path | MaskedLM | None" = None
    words: str | Path | None = None
    language: str = "en"

    def __post_init__(self) -> None:
        if not is_english(self.language) and self.encoder == ENCODER:
            self.encoder = None

    def missing(self, attack: "Attack") -> list[str]:
        """What an attack needs that does not come with the package for the language, and was not given."""
        if is_english(self.language):
            return []
        given = {"lexicon": self.words, "vectors": self.vectors, "encoder": self.encoder}
        return [name for name in attack.needs if given[name] is None]

    def require(self, attack: "Attack") -> None:
        """Raise if something is missing that an attack needs.

        Args:
            attack: The attack.
        """
        if missing := self.missing(attack):
            raise MissingResource(
                f"{attack.name} needs what comes with the package for English alone, and the texts are in "
                f"{self.language!r}: give {', '.join(HOW[name] for name in missing)} (in a recipe under `attack`); or "
                "take deepwordbug, which needs nothing."
            )

    @cached_property
    def lexicon(self) -> Lexicon:
        """Synonyms, parts of speech and stop words: the user's, or WordNet's."""
        if self.words is not None:
            return read_lexicon(self.words)
        if not is_english(self.language):
            raise MissingResource(f"The lexicon of the package is English: give {HOW['lexicon']}.")
        return bundled()

    @cached_property
    def neighbours(self) -> "Neighbours":
        """The nearest words of a word, by the user's vectors or the embedded ones."""
        from tombola.attacks.neighbours import embedded_neighbours, neighbours_of

        if self.vectors is None and not is_english(self.language):
            raise MissingResource(f"The word vectors of the package are English: give {HOW['vectors']}.")
        if self.vectors is None:
            return embedded_neighbours(TABLE_WIDTH)
        return neighbours_of(self.vectors, TABLE_WIDTH)

    @cached_property
    def similarity(self) -> "SentenceEncoder":
        """The sentence encoder that tells how alike two texts are."""
        from tombola.attacks.encoder import SentenceEncoder

        if self.encoder is None:
            raise MissingResource(
                "This attack compares meanings: give a sentence encoder, such as encoder='minilm'."
            )
        return SentenceEncoder(str(self.encoder))

    @cached_property
    def masked_lm(self) -> "MaskedLM":
        """The masked language model that proposes words."""
        from tombola.attacks.masked_lm import MaskedLM

        if self.mlm is None:
            raise MissingResource(
                "BERT-Attack needs a masked language model and none comes with the package: give one as mlm, by "
                "its name on the hub ('bert-base-uncased') or as a folder; embedding_swap does without."
            )
        return self.mlm if isinstance(self.mlm, MaskedLM) else MaskedLM.load(str(self.mlm))

    @property
    def similarity_rows(self) -> int:
        """How many texts the sentence encoder has read so far."""
        return self.similarity.rows if "similarity" in vars(self) else 0

    def fingerprints(self) -> dict[str, str]:
        """What was asked for, by content, to tell one run's resources from another's."""
        mlm = self.mlm if isinstance(self.mlm, str | Path | None) else self.mlm.name
        vectors = Path(self.vectors).expanduser() if self.vectors is not None else None
        own: dict[str, str] = {} if is_english(self.language) else {"language": self.language}
        if self.words is not None:
            words = Path(self.words).expanduser()
            own["lexicon"] = checksum(words) if words.is_file() else str(words)
        return own | {
            "vectors": checksum(vectors) if vectors is not None and vectors.is_file() else str(vectors),
            "encoder": _fingerprint(self.encoder),
            "mlm": _fingerprint(mlm) if isinstance(self.mlm, str | Path) else str(mlm),
        }

    def used(self) -> dict[str, str]:
        """What has really been used so far, by kind, in words for the report."""
        loaded = vars(self)
        names = {}
        if "lexicon" in loaded:
            names["lexicon"] = self.lexicon.source
        if "neighbours" in loaded:
            names["word neighbours"] = self.neighbours.source
        if "similarity" in loaded:
            names["sentence encoder"] = f"{public_name(str(self.encoder))}, mean-pooled"
        if "masked_lm" in loaded:
            names["masked LM"] = public_name(self.masked_lm.name)
        return names


def _fingerprint(model: str | Path | None) -> str:
    """The content of a model; its name where it is not there, which matters only to attacks that ask it."""
    from tombola.models.finding import find_model

    if model is None:
        return "None"
    try:
        return find_model(str(model)).fingerprint
    except ModelError:
        return str(model)
