"""The resources of attacks, loaded on demand: lexicon, word neighbours, sentence encoder, masked LM."""

from collections.abc import Iterable, Mapping
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
"""The bundled sentence encoder."""
HOW = {
    "lexicon": "a lexicon (parts of speech, synonyms, stop words) with --lexicon FILE",
    "vectors": "word vectors with --vectors FILE",
    "encoder": "a sentence encoder with --encoder MODEL",
}
"""How to supply each resource that is bundled only for English."""
MLM = "masked LM"
"""The resource that is never bundled."""
NO_MLM = (
    "BERT-Attack needs a masked language model, which the package does not include: pass a hub id "
    "('bert-base-uncased') or a folder as mlm (in a recipe, under `attack`), or use embedding_swap, which needs none."
)
NEIGHBOURS = 2
"""The version of the bundled table of neighbours; raise it, and that of the stage `Score`, when its words change."""
PROPOSALS = 2
"""The version of a masked LM's proposals; raise it when they change."""
SWAP_TABLE = 2
"""The version of the words that training with word swaps may replace, and of their replacements."""
TABLE_WIDTH = 50  # neighbours kept per word: TextFooler needs the most


SUPPLY = {"vectors": "vectors", "lexicon": "lexicon", "mlm": MLM}
"""The resource that each option supplies. The encoder is not among them: every attack measures similarity with it."""


class MissingResource(TombolaError):
    """An attack needs a resource that is neither given nor bundled."""


def idle_options(options: Mapping[str, object], attacks: Iterable["Attack"]) -> list[str]:
    """Return the given options that supply a resource which none of the attacks uses.

    Args:
        options: The values of options by name; None if not given.
        attacks: The attacks.
    """
    used = {name for attack in attacks for name in attack.needs}
    return [
        name for name, resource in SUPPLY.items() if options.get(name) is not None and resource not in used
    ]


@dataclass(eq=False)
class Resources:
    """The sources of an attack's resources. By default all are bundled, except the masked LM, which must be given.

    `vectors`: a file of word vectors (TextFooler was published with counter-fitted ones). `encoder`: a mean-pooled
    sentence encoder; with None, similarity is neither required nor measured, for attacks that can do without. `mlm`:
    a masked language model, for BERT-Attack. Both are named like any model: bundled, a folder, or a hub id. `words`:
    the user's lexicon (`read_lexicon`). The bundled resources are English and are not used for any other `language`.
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
        """Return the resources that an attack needs but that are neither given nor bundled for the language."""
        if is_english(self.language):
            return []
        files = {"lexicon": self.words, "vectors": self.vectors, "encoder": self.encoder}
        return [name for name in attack.needs if name in files and files[name] is None]

    def bundled_neighbours(self, attack: "Attack") -> int | None:
        """Return the version of the bundled table of neighbours if the attack looks words up there."""
        return NEIGHBOURS if "vectors" in attack.needs and self.vectors is None else None

    def require(self, attack: "Attack") -> None:
        """Raise an error if an attack lacks a resource.

        Args:
            attack: The attack.
        """
        if MLM in attack.needs and self.mlm is None and "masked_lm" not in vars(self):
            raise MissingResource(NO_MLM)
        if missing := self.missing(attack):
            raise MissingResource(
                f"{attack.name} needs resources that the package only has for English, but the texts are in "
                f"{self.language!r}: pass {', '.join(HOW[name] for name in missing)} (in a recipe, under `attack`), "
                "or use deepwordbug, which needs none of them."
            )

    @cached_property
    def lexicon(self) -> Lexicon:
        """Synonyms, parts of speech and stop words: the user's lexicon, or WordNet."""
        if self.words is not None:
            return read_lexicon(self.words)
        if not is_english(self.language):
            raise MissingResource(f"The built-in lexicon is English: pass {HOW['lexicon']}.")
        return bundled()

    @cached_property
    def neighbours(self) -> "Neighbours":
        """The nearest neighbours of words, by the user's vectors or the bundled ones."""
        from tombola.attacks.neighbours import bundled_neighbours, neighbours_of

        if self.vectors is None and not is_english(self.language):
            raise MissingResource(f"The built-in word vectors are English: pass {HOW['vectors']}.")
        if self.vectors is None:
            return bundled_neighbours()
        return neighbours_of(self.vectors, TABLE_WIDTH)

    @cached_property
    def similarity(self) -> "SentenceEncoder":
        """The sentence encoder that measures similarity."""
        from tombola.attacks.encoder import SentenceEncoder

        if self.encoder is None:
            raise MissingResource("This attack needs a sentence encoder: pass one, such as encoder='minilm'.")
        return SentenceEncoder(str(self.encoder))

    @cached_property
    def masked_lm(self) -> "MaskedLM":
        """The masked language model that proposes words."""
        from tombola.attacks.masked_lm import MaskedLM

        if self.mlm is None:
            raise MissingResource(NO_MLM)
        return self.mlm if isinstance(self.mlm, MaskedLM) else MaskedLM.load(str(self.mlm))

    @property
    def similarity_rows(self) -> int:
        """The number of texts that the sentence encoder has embedded so far."""
        return self.similarity.rows if "similarity" in vars(self) else 0

    def fingerprints(self) -> dict[str, str]:
        """Return content hashes of the requested resources, to tell runs apart."""
        mlm = self.mlm if isinstance(self.mlm, str | Path | None) else self.mlm.name
        vectors = Path(self.vectors).expanduser() if self.vectors is not None else None
        neighbours = f"bundled {NEIGHBOURS}" if vectors is None else str(vectors)
        identity: dict[str, str] = {} if is_english(self.language) else {"language": self.language}
        if self.words is not None:
            words = Path(self.words).expanduser()
            identity["lexicon"] = checksum(words) if words.is_file() else str(words)
        return identity | {
            "vectors": checksum(vectors) if vectors is not None and vectors.is_file() else neighbours,
            "encoder": _fingerprint(self.encoder),
            "mlm": _fingerprint(mlm) if isinstance(self.mlm, str | Path) else str(mlm),
        }

    def used(self) -> dict[str, str]:
        """Return descriptions of the resources used so far, by kind, for the report."""
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
    """Return a model's content hash, or its name if it is missing, which matters only to attacks that use it."""
    from tombola.models.finding import find_model

    if model is None:
        return "None"
    try:
        return find_model(str(model)).fingerprint
    except ModelError:
        return str(model)
