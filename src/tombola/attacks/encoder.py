"""The similarity of two texts: the cosine of their embeddings by a sentence encoder.

The published attacks used the Universal Sentence Encoder, a TensorFlow model. Ours is mean-pooled MiniLM-L6, which is
bundled with the package. The published thresholds are kept unchanged, although they now apply to this encoder's
scale.
"""

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import torch

from tombola.attacks.scorer import in_batches, near_edge, on, tokenize
from tombola.foundations.hardware.machine import default_device
from tombola.foundations.quiet import quiet
from tombola.models.finding import find_model
from tombola.models.loading import load_tokenizer
from tombola.models.safety import open_pretrained
from tombola.tasks.encoding import Collate

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

STEP = 2.0**-10  # of the cosine's grid
SLACK = 1e-6  # above the noise of a cosine of unit vectors in 32-bit floats


class SentenceEncoder:
    """Cosine similarities by a mean-pooled encoder; counts the texts it has embedded."""

    def __init__(self, name: str = "minilm", *, max_length: int = 256, batch_tokens: int = 2048) -> None:
        self.reference = find_model(name)
        self.max_length, self.batch_tokens = max_length, batch_tokens
        self.rows = 0
        self._kept: dict[str, np.ndarray] = {}

    @cached_property
    def model(self) -> "PreTrainedModel":
        """The encoder, without a head."""
        from transformers import AutoModel

        with quiet():
            model = open_pretrained(AutoModel, self.reference.folder, dtype=torch.float32)
        return model.eval().to(default_device())

    @cached_property
    def tokenizer(self) -> "PreTrainedTokenizerBase":
        """The encoder's tokenizer."""
        return load_tokenizer(self.reference.folder)

    def __call__(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """Return the cosine of each pair, which depends only on its two texts (rounded like the Scorer's logits)."""
        texts = list(dict.fromkeys(text for pair in pairs for text in pair))
        self._keep(texts)
        first = np.stack([self._kept[a] for a, _ in pairs])
        second = np.stack([self._kept[b] for _, b in pairs])
        cosines = np.einsum("nd,nd->n", first, second)
        for i in np.flatnonzero(near_edge(cosines, STEP, SLACK)).tolist():
            a, b = (self.embed([text])[0] for text in pairs[i])
            cosines[i] = a @ b
        rounded: list[float] = (np.round(cosines / STEP) * STEP).tolist()
        return rounded

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        """Return unit vectors, one row per text."""
        model = self.model

        def forward(batch: dict[str, torch.Tensor]) -> torch.Tensor:
            inputs = on(model.device, batch)
            states = model(**inputs).last_hidden_state
            real = inputs["attention_mask"].unsqueeze(-1)
            return torch.nn.functional.normalize((states * real).sum(1) / real.sum(1), dim=-1)

        encoded = tokenize(self.tokenizer, [(text,) for text in texts], self.max_length)
        return in_batches(forward, encoded, Collate(self.tokenizer), self.batch_tokens)

    def _keep(self, texts: list[str]) -> None:
        """Compute the missing vectors of `texts`, dropping earlier ones that `texts` does not use."""
        known = {text: self._kept[text] for text in texts if text in self._kept}
        if missing := [text for text in texts if text not in known]:
            self.rows += len(missing)
            self._kept = known | dict(zip(missing, self.embed(missing), strict=True))
