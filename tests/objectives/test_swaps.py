"""Word swaps: which words are replaced, what is trained on, and the tokens that may replace a token."""

import pytest
import torch
from torch import nn

from tombola.objectives import Objective
from tombola.objectives.distillation import LOGITS, STATES
from tombola.objectives.swaps import SWAPS, SwapAdversary, WordSwaps, swapped

EMBEDDINGS = torch.tensor([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [2.0, 0.0], [-1.0, 0.0], [0.0, 3.0]])
NONE = [-1, -1]


class Bag(nn.Module):
    """Sums the embeddings of a text."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding.from_pretrained(EMBEDDINGS.clone(), freeze=False)

    def get_input_embeddings(self) -> nn.Embedding:
        return self.embedding

    def forward(self, input_ids: torch.Tensor) -> torch.Tensor:
        return self.embedding(input_ids).sum(1)


class Linear(Objective):
    """The mean of a direction's product with the sums, whose gradient is the direction for every token."""

    def __init__(self, direction: list[float]) -> None:
        self.direction = torch.tensor(direction)
        self.seen: list[torch.Tensor] = []

    def loss(self, model: nn.Module, batch: dict[str, torch.Tensor]) -> torch.Tensor:
        self.seen.append(batch["input_ids"])
        return (model(batch["input_ids"]) @ self.direction).mean()


def batch_of(ids: list[list[int]], options: list[list[list[int]]]) -> dict[str, torch.Tensor]:
    tokens = torch.tensor(ids)
    return {"input_ids": tokens, "attention_mask": torch.ones_like(tokens), SWAPS: torch.tensor(options)}


def test_the_neighbour_that_raises_the_loss_most_is_taken():
    batch = batch_of([[1, 2]], [[[3, 4], [5, -1]]])
    gradient = torch.tensor([[[1.0, 0.0], [1.0, 0.0]]])
    # Token 1 rises by 1 with 3 and falls with 4; token 2 has a neighbour that changes nothing along the gradient.
    assert swapped(batch["input_ids"], batch[SWAPS], gradient, EMBEDDINGS, 1.0).tolist() == [[3, 2]]


@pytest.mark.parametrize(
    ("share", "expected"), [(1.0, [[3, 5, 2]]), (0.5, [[1, 5, 2]]), (0.51, [[3, 5, 2]]), (0.01, [[1, 5, 2]])]
)
def test_a_share_of_the_words_with_neighbours_is_replaced_by_gain(share, expected):
    batch = batch_of([[1, 2, 2]], [[[3, -1], [5, -1], NONE]])
    gradient = torch.ones(1, 3, 2)
    assert swapped(batch["input_ids"], batch[SWAPS], gradient, EMBEDDINGS, share).tolist() == expected


@pytest.mark.parametrize("share", [0.01, 0.07, 0.15, 0.3, 0.6, 0.9, 1.0])
def test_rounding_errors_replace_no_more_words(share):
    for words in (1, 10, 25, 50, 90, 100, 180, 200):
        ids, options = torch.ones(1, words, dtype=torch.long), torch.full((1, words, 1), 3)
        new = swapped(ids, options, torch.ones(1, words, 2), EMBEDDINGS, share)
        assert new.eq(3).sum() == -(-words * round(100 * share) // 100)


def test_a_text_without_neighbours_stays():
    batch = batch_of([[1, 2]], [[NONE, NONE]])
    assert swapped(batch["input_ids"], batch[SWAPS], torch.ones(1, 2, 2), EMBEDDINGS, 1.0).tolist() == [
        [1, 2]
    ]


def test_both_texts_count_by_weight_and_step_agrees_with_loss():
    batch = batch_of([[1, 2]], [[[3, 4], NONE]])
    inner = Linear([1.0, 0.0])
    objective = WordSwaps(inner, SwapAdversary(share=1.0, weight=0.25))
    model = Bag()
    loss = objective.loss(model, batch)
    assert [ids.tolist() for ids in inner.seen] == [[[1, 2]], [[3, 2]]]
    assert loss.item() == pytest.approx(0.75 * 1.0 + 0.25 * 2.0)
    (expected,) = torch.autograd.grad(loss, model.embedding.weight)

    stepped = objective.step(model, batch, lambda part: part.backward())
    assert stepped.item() == pytest.approx(loss.item())
    torch.testing.assert_close(model.embedding.weight.grad, expected)


def test_the_choice_does_not_depend_on_the_weight_of_the_unchanged_text():
    batch = batch_of([[1, 2]], [[[3, 4], NONE]])
    for weight in (0.01, 0.99):
        inner = Linear([1.0, 0.0])
        WordSwaps(inner, SwapAdversary(share=1.0, weight=weight)).step(
            Bag(), batch, lambda part: part.backward()
        )
        assert inner.seen[-1].tolist() == [[3, 2]]


def test_every_round_starts_from_the_original_text():
    batch = batch_of([[1, 2]], [[[3, 4], NONE]])
    inner = Linear([1.0, 0.0])
    objective = WordSwaps(inner, SwapAdversary(share=1.0, weight=0.5, steps=3))
    loss = objective.loss(Bag(), batch)
    assert [ids.tolist() for ids in inner.seen] == [[[1, 2]]] + [[[3, 2]]] * 3
    assert loss.item() == pytest.approx(0.5 * 1.0 + 0.5 * 2.0)


def test_gradients_reach_frozen_embeddings_too():
    batch = batch_of([[1, 2]], [[[3, 4], NONE]])
    model, inner = Bag(), Linear([1.0, 0.0])
    model.embedding.weight.requires_grad_(False)
    WordSwaps(inner, SwapAdversary(share=1.0)).loss(model, batch)
    assert inner.seen[-1].tolist() == [[3, 2]]


def test_the_teachers_states_count_for_the_unchanged_text_alone():
    class Columns(Linear):
        def loss(self, model: nn.Module, batch: dict[str, torch.Tensor]) -> torch.Tensor:
            columns.append(set(batch))
            return super().loss(model, batch)

    columns: list[set[str]] = []
    batch = batch_of([[1, 2]], [[[3, 4], NONE]])
    taught = {**batch, LOGITS: torch.zeros(1, 2), STATES: torch.zeros(1, 1, 2, 2)}
    WordSwaps(Columns([1.0, 0.0]), SwapAdversary()).loss(Bag(), taught)
    assert [column in columns[0] for column in (LOGITS, STATES)] == [True, True]
    assert [column in columns[1] for column in (LOGITS, STATES)] == [True, False]
