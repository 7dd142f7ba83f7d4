"""Whole numbers with values among tensors without: what is computed, what stays, and what hangs on a mask."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")
from suanli.readers.torch_module.whole_numbers import KEPT, whole_numbers  # noqa: E402

pytestmark = pytest.mark.torch
META = torch.device("meta")


def test_whole_numbers_are_kept_and_others_are_not() -> None:
    with whole_numbers():
        numbers, floats = torch.arange(5, device=META), torch.zeros(5, device=META)
        assert (numbers * 2 + 1).tolist() == [1, 3, 5, 7, 9]
        assert (floats.device.type, (floats + numbers).device.type) == ("meta", "meta")
        assert int((numbers > 2).sum()) == 2


def test_moved_beside_the_weights_whole_numbers_keep_their_values() -> None:
    with whole_numbers():
        assert torch.tensor([3, 4]).to(META).tolist() == [3, 4]
        assert torch.tensor([3.0]).to(META).device.type == "meta"


def test_moved_beside_whole_numbers_what_has_no_values_stays() -> None:
    with whole_numbers():
        assert torch.zeros(2, device=META).to(torch.arange(2).device).device.type == "meta"


def test_a_mask_says_how_many() -> None:
    """Two of four rows are taken: the size hangs on values, which are there."""
    with whole_numbers():
        rows, mask = torch.zeros(4, 3, device=META), torch.tensor([True, False, True, False]).to(META)
        assert tuple(rows[mask].shape) == (2, 3)
        assert tuple(rows.masked_select(mask[:, None]).shape) == (6,)
        rows[mask] = 1.0
        assert tuple(torch.zeros(2, 3, 5, device=META)[:, torch.tensor([0, 2])].shape) == (2, 2, 5)


def test_an_embedding_of_known_words() -> None:
    with whole_numbers():
        out = torch.nn.functional.embedding(torch.tensor([[1, 2]]), torch.zeros(7, 3, device=META))
        assert (out.device.type, tuple(out.shape)) == ("meta", (1, 2, 3))


def test_large_ones_have_no_values() -> None:
    with whole_numbers():
        assert torch.zeros(KEPT + 1, dtype=torch.int64, device=META).device.type == "meta"


def test_outside_nothing_is_changed() -> None:
    with whole_numbers():
        pass
    assert torch.arange(3, device=META).device.type == "meta"


def test_a_model_that_asks_how_long_its_words_are_is_traced() -> None:
    from suanli.readers.torch_module.trace import Options, trace_copy

    class Asking(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.words, self.head = torch.nn.Embedding(10, 4), torch.nn.Linear(4, 6, bias=False)

        def forward(self, ids: Any) -> Any:
            return self.head(self.words(ids)[ids > 2])

    with torch.device("meta"):
        model = Asking()
    traced = trace_copy(model, (torch.tensor([[1, 5, 6, 7]]),), {}, Options(device="meta", values=True))
    assert traced.model_flops == 2 * 3 * 4 * 6  # three words are more than 2
