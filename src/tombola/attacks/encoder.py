"""The similarity of two texts: the cosine of their embeddings by a sentence encoder.

The published attacks used the Universal Sentence Encoder, a TensorFlow model. Ours is mean-pooled MiniLM-L6, which is
bundled with the package. The published thresholds are kept unchanged, although they now apply to this encoder's
scale.

An attack mostly asks whether two texts are similar enough. Where bf16 is faster, it answers whenever its cosine is
far enough from the threshold; the few others are computed in 32 bits, so that all answers are those of 32 bits.
"""

from collections.abc import Iterable, Sequence
from copy import deepcopy
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np
import torch

from tombola.attacks.scorer import in_batches, near_edge, on, tokenize
from tombola.foundations.hardware import resolve_precision
from tombola.foundations.hardware.machine import default_device
from tombola.foundations.quiet import quiet
from tombola.models.finding import find_model
from tombola.models.loading import load_tokenizer
from tombola.models.safety import open_pretrained
from tombola.tasks.encoding import Collate, fitting_length

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

MAX_LENGTH = 256  # tokens per text
STEP = 2.0**-10  # of the cosine's grid
SLACK = 1e-6  # above the noise of a cosine of unit vectors in 32-bit floats
ROUGH = 0.015  # above the noise of a cosine in bf16, which reached 0.004
SAMPLE = 64  # pairs on which the noise is measured, since that of another encoder may be greater


class SentenceEncoder:
    """Cosine similarities by a mean-pooled encoder; counts the texts it has embedded.

    `precision`: the arithmetic for a first answer to `at_least`; auto means bf16 where it is faster.
    """

    def __init__(
        self,
        name: str,
        *,
        precision: Literal["auto", "fp32", "bf16"] = "auto",
    ) -> None:
        self.reference = find_model(name)
        self.precision = precision
        self.rows = 0
        self._kept: dict[str, np.ndarray] = {}
        self._rough: dict[str, np.ndarray] = {}
        self._margin: float | None = None

    @cached_property
    def model(self) -> "PreTrainedModel":
        """The encoder, without a head."""
        from transformers import AutoModel

        with quiet():
            model = open_pretrained(AutoModel, self.reference.folder, dtype=torch.float32)
        return model.eval().to(default_device())

    @cached_property
    def _model_in_bf16(self) -> "PreTrainedModel":
        """A copy with bf16 weights: autocast would convert them, and the states between layers, for every call."""
        return deepcopy(self.model).to(torch.bfloat16)

    @cached_property
    def tokenizer(self) -> "PreTrainedTokenizerBase":
        """The encoder's tokenizer."""
        return load_tokenizer(self.reference.folder)

    def __call__(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """Return the cosine of each pair, which depends only on its two texts (rounded like the Scorer's logits)."""
        self._kept = self._embedded(self._kept, [text for pair in pairs for text in pair], "fp32")
        cosines = self._cosines(self._kept, pairs)
        for i in np.flatnonzero(near_edge(cosines, STEP, SLACK)).tolist():
            a, b = (self.embed([text])[0] for text in pairs[i])
            cosines[i] = a @ b
        rounded: list[float] = (np.round(cosines / STEP) * STEP).tolist()
        return rounded

    def at_least(self, keys: Sequence[tuple[str, str, float]]) -> list[bool]:
        """Return whether the cosine of two texts is at least the third element of a key, in 32 bits."""
        pairs, thresholds = [key[:2] for key in keys], np.array([key[2] for key in keys])
        if resolve_precision(self.precision) == "fp32":
            cosines = np.array(self(pairs))
        else:
            cosines = self._cosines_in_bf16(pairs)
            if self._margin is None:
                self._margin = max(ROUGH, 4 * self._error_of_bf16(pairs[:SAMPLE]))
            if unclear := np.flatnonzero(np.abs(cosines - thresholds) <= self._margin).tolist():
                cosines[unclear] = self([pairs[i] for i in unclear])
        decided: list[bool] = (cosines >= thresholds).tolist()
        return decided

    def _cosines_in_bf16(self, pairs: Sequence[tuple[str, str]]) -> np.ndarray:
        """Return the cosines in bf16."""
        self._rough = self._embedded(self._rough, [text for pair in pairs for text in pair], "bf16")
        return self._cosines(self._rough, pairs)

    def _error_of_bf16(self, pairs: Sequence[tuple[str, str]]) -> float:
        """Return the largest difference between the cosines in bf16 and in 32 bits."""
        return float(np.abs(self._cosines_in_bf16(pairs) - np.array(self(pairs))).max())

    def embed(self, texts: Sequence[str], precision: Literal["fp32", "bf16"] = "fp32") -> np.ndarray:
        """Return unit vectors, one row per text."""
        model = self.model if precision == "fp32" else self._model_in_bf16

        def forward(batch: dict[str, torch.Tensor]) -> torch.Tensor:
            inputs = on(model.device, batch)
            states = model(**inputs).last_hidden_state
            real = inputs["attention_mask"].unsqueeze(-1)
            return torch.nn.functional.normalize((states.float() * real).sum(1) / real.sum(1), dim=-1)

        length = fitting_length(MAX_LENGTH, model.config)
        encoded = tokenize(self.tokenizer, [(text,) for text in texts], length)
        return in_batches(forward, encoded, Collate(self.tokenizer))

    def _embedded(
        self, known: dict[str, np.ndarray], texts: Iterable[str], precision: Literal["fp32", "bf16"]
    ) -> dict[str, np.ndarray]:
        """Return the vectors of `texts`, those of `known` and new ones; others of `known` only if none is new."""
        unique = dict.fromkeys(texts)
        missing = [text for text in unique if text not in known]
        if not missing:
            return known
        self.rows += len(missing)
        kept = {text: known[text] for text in unique if text in known}
        return kept | dict(zip(missing, self.embed(missing, precision), strict=True))

    @staticmethod
    def _cosines(vectors: dict[str, np.ndarray], pairs: Sequence[tuple[str, str]]) -> np.ndarray:
        first = np.stack([vectors[a] for a, _ in pairs])
        second = np.stack([vectors[b] for _, b in pairs])
        cosines: np.ndarray = np.einsum("nd,nd->n", first, second)
        return cosines
