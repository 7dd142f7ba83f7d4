"""What a count leaves out, with its size: norms, activations, softmax, lookups, bias additions."""

from __future__ import annotations

from suanli.nouns.arch import Placed
from suanli.nouns.layers import Attention, Conv, Elementwise, Embedding, Experts, Linear, Norm, Recurrent, Scan
from suanli.nouns.ledger import Uncounted
from suanli.work import Setting, attended_pairs, layer_work, passive_width

REASONS = {
    "norms": "elements normalised; no matmul",
    "activations and pooling": "elements passed through; no matmul",
    "softmax": "scores exponentiated and summed; no matmul",
    "decay of scans' states": "elements scaled; the recurrence's products are in rows of kind scan",
    "embedding lookups": "elements copied; a gather, not a product",
    "bias additions": "one add an element; no matmul",
}


def uncounted(at: Setting) -> tuple[Uncounted, ...]:
    """Work of one forward pass over the batch that no convention counts, by kind; kinds with none are left out."""
    sizes = dict.fromkeys(REASONS, 0)
    for placed in at.arch.leaves():
        for what, operations in _left_out(placed, at):
            sizes[what] += placed.times * operations
    return tuple(Uncounted(what, sizes[what], why) for what, why in REASONS.items() if sizes[what])


def _left_out(placed: Placed, at: Setting) -> tuple[tuple[str, int], ...]:
    """What one copy of a layer does besides its products."""
    layer, tokens = placed.layer, at.tokens(placed.stream)
    if isinstance(layer, Norm):
        return (("norms", tokens * passive_width(layer)),)
    if isinstance(layer, Elementwise):
        return (("activations and pooling", tokens * passive_width(layer)),)
    if isinstance(layer, Embedding):
        return (("embedding lookups", tokens * layer.dim),)
    if isinstance(layer, Attention):
        return (("softmax", _scores(layer, placed.stream, at)),)
    if isinstance(layer, Scan):
        if layer.rule == "sum":  # nothing fades
            return ()
        return (("decay of scans' states", tokens * layer.state_elements),)
    return (("bias additions", _biases(placed, at)),)


def _scores(layer: Attention, stream: str, at: Setting) -> int:
    """Scores of all heads that the model's own mask leaves."""
    queries = at.queries(stream)
    if queries == 0:
        return 0
    pairs = attended_pairs(layer, queries, at.keys(layer.key_stream or stream), "mask")
    scores: int = at.sequences(stream) * pairs.value * layer.heads
    return scores


def _biases(placed: Placed, at: Setting) -> int:
    """Elements a bias is added to; torch's recurrent layers add two a gate and step."""
    layer, tokens = placed.layer, at.tokens(placed.stream)
    if isinstance(layer, Linear | Conv):
        return layer_work(placed, at).writes if layer.bias else 0
    if isinstance(layer, Experts) and layer.bias:
        inner = (2 if layer.gated else 1) * layer.ffn
        return tokens * min(layer.top_k, layer.num) * (inner + layer.hidden)
    if isinstance(layer, Recurrent) and layer.bias:
        return tokens * layer.directions * layer.num_layers * 2 * layer.gates * layer.hidden_size
    return 0
