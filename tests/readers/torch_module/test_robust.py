"""Hostile modules: one clear error, and afterwards nothing is patched, hooked, trained or slower."""

from __future__ import annotations

import time
from typing import Any

import pytest

from suanli.errors import SuanliError
from suanli.readers.torch_module import trace
from suanli.readers.torch_module.load import load_factory

torch = pytest.importorskip("torch")
from torch import library, nn  # noqa: E402
from torch.nn.modules import module as hooks  # noqa: E402
from torch.utils._python_dispatch import _get_current_dispatch_mode_stack  # noqa: E402
from torch.utils.flop_counter import FlopCounterMode  # noqa: E402

pytestmark = pytest.mark.torch
X = torch.zeros(2, 3)


class Inner(nn.Module):
    """Does what it is told beside its product."""

    def __init__(self, then: Any) -> None:
        super().__init__()
        self.linear, self.then = nn.Linear(3, 3), then

    def forward(self, x: Any) -> Any:
        return self.then(self, self.linear(x))


def hostile(then: Any) -> nn.Module:
    return nn.Sequential(nn.ReLU(), Inner(then))


def state() -> Any:
    return (
        len(hooks._global_forward_hooks), len(hooks._global_forward_pre_hooks), len(_get_current_dispatch_mode_stack()),
        torch._C._len_torch_function_stack(), torch.is_grad_enabled(), nn.functional.linear, nn.Linear.forward,
    )  # fmt: skip


@pytest.fixture(autouse=True)
def nothing_left() -> Any:
    before = state()
    yield
    assert state() == before


def failing(then: Any, **options: Any) -> SuanliError:
    model = hostile(then).eval()
    with pytest.raises(SuanliError) as caught:
        trace(model, X, **options)
    assert not model.training and all(parameter.grad is None for parameter in model.parameters())
    return caught.value


def raises(self: Any, x: Any) -> Any:
    raise ValueError("not today")


def forever(self: Any, x: Any) -> Any:
    while True:
        pass


def forever_in_torch(self: Any, x: Any) -> Any:
    while True:
        x = x + 1


def forever_and_deaf(self: Any, x: Any) -> Any:
    while True:
        try:
            x.reshape(7)
        except Exception:  # noqa: BLE001
            continue


def test_an_error_names_the_module_and_says_what_it_was() -> None:
    fault = failing(raises).faults[0]
    assert fault.code == "module_failed"
    assert "ValueError: not today" in fault.message
    assert "module 1 of Sequential" in (fault.where or "")


@pytest.mark.parametrize("train", [False, True])
def test_an_error_in_backward_is_told_too(train: bool) -> None:
    class Bad(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x.clone()

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            raise ValueError("no gradient today")

    model = hostile(lambda _, x: Bad.apply(x))
    if not train:
        assert trace(model, X).model_flops == 2 * 2 * 9
        return
    with pytest.raises(SuanliError, match="no gradient today"):
        trace(model, X, train=True)


def asleep(self: Any, x: Any) -> Any:
    time.sleep(60)


def deaf_to_everything(self: Any, x: Any) -> Any:
    while True:
        try:
            time.sleep(60)
        except BaseException:  # noqa: BLE001
            continue


@pytest.mark.parametrize("then", [forever, forever_in_torch, forever_and_deaf, asleep, deaf_to_everything])
@pytest.mark.parametrize("device", ["meta", "cpu"])
def test_a_loop_that_does_not_end_is_stopped(then: Any, device: str) -> None:
    start = time.monotonic()
    assert failing(then, time_limit=0.3, device=device).faults[0].code == "too_slow"
    assert time.monotonic() - start < 30  # a moment, but the machine may be busy


@pytest.mark.parametrize(
    "then",
    [
        lambda _, x: x.new_zeros(10**6, 10**6) + x.sum(),
        lambda _, x: torch.empty(10**6, 10**6).to(x.device) + x.sum(),
        lambda _, x: x.sum() + x.new_zeros(10**6, 1) * x.new_zeros(1, 10**6),
        lambda _, x: x.sum() + x.new_zeros(10**6, 1) @ x.new_zeros(1, 10**6),
        lambda _, x: x.repeat(10**6, 10**6),
        lambda _, x: x.new_zeros(1).expand(10**12).clone(),
    ],
    ids=["zeros", "empty", "broadcast", "product", "repeat", "expand"],
)
def test_huge_memory_is_refused_on_the_cpu(then: Any) -> None:
    assert failing(then, device="cpu").faults[0].code == "too_large"


def test_many_tensors_are_bounded_together() -> None:
    """Each is small; what has been let go does not count."""

    def keeps(_: Any, x: Any) -> Any:
        kept = [x.new_zeros(10**5) for _ in range(100)]
        return x + kept[0][:3]

    def lets_go(_: Any, x: Any) -> Any:
        for _ in range(100):
            x = x + x.new_zeros(10**5)[:3]
        return x

    fault = failing(keeps, device="cpu", memory_limit=10**7).faults[0]
    assert (fault.code, fault.expected) == ("too_large", "at most 10 MB outside the meta device")
    assert trace(hostile(lets_go), X, device="cpu", memory_limit=10**7).model_flops == 2 * 2 * 9
    assert trace(hostile(keeps), X, device="meta", memory_limit=10**7).model_flops == 2 * 2 * 9


def test_huge_memory_is_free_on_meta() -> None:
    model = hostile(lambda _, x: x.new_zeros(10**6, 1) @ x.new_zeros(1, 10**6) + x.sum())
    assert trace(model, X).model_flops == 2 * 10**12 + 2 * 2 * 9


def test_a_model_too_large_to_copy_is_refused_on_the_cpu() -> None:
    with torch.device("meta"):
        model = nn.Linear(10**6, 10**6)
    with pytest.raises(SuanliError, match="too much memory"):
        trace(model, torch.zeros(1, 10**6, device="meta"), device="cpu")


@pytest.mark.parametrize(
    "then",
    [
        lambda _, x: x * 2 if x.sum() > 0 else x,
        lambda _, x: x * x.max().item(),
        lambda _, x: x[x.nonzero()[:, 0]],
    ],
    ids=["branch", "item", "nonzero"],
)
def test_values_that_are_not_there(then: Any) -> None:
    """On meta a clear error that says what to do; with weights of its own the module is run on the CPU instead."""
    fault = failing(then, device="meta").faults[0]
    assert fault.code == "needs_values"
    assert "device='cpu'" in (fault.hint or "")
    assert trace(hostile(then), X).model_flops == 2 * 2 * 9


def test_unknown_operators_make_a_lower_bound() -> None:
    traced = trace(hostile(lambda _, x: torch.linalg.svd(torch.linalg.svd(x)[2])[0]), X)
    assert traced.lower_bound
    (missing,) = traced.uncounted
    assert (missing.what, missing.operations) == ("aten._linalg_svd.default", 2)
    assert set(missing.shapes) == {"2×3", "3×3"}
    assert traced.model_flops == 2 * 2 * 9


def test_an_operator_of_another_package_is_listed() -> None:
    @library.custom_op("suanli_test::mystery", mutates_args=())
    def mystery(x: torch.Tensor) -> torch.Tensor:
        return x @ x.T

    @mystery.register_fake
    def _(x: torch.Tensor) -> torch.Tensor:
        return x.new_empty(x.shape[0], x.shape[0])

    for device in ("meta", "cpu"):
        traced = trace(hostile(lambda _, x: mystery(x)), X, device=device)
        assert [missing.what for missing in traced.uncounted] == ["suanli_test.mystery.default"]


class OddError(BaseException):
    pass


@pytest.mark.parametrize("problem", [SystemExit(3), OddError("no"), GeneratorExit()])
@pytest.mark.parametrize("device", ["meta", "cpu"])
def test_a_forward_cannot_end_the_process(problem: BaseException, device: str) -> None:
    def ends(self: Any, x: Any) -> Any:
        raise problem

    fault = failing(ends, device=device).faults[0]
    assert fault.code == "module_failed"
    assert fault.message.startswith(type(problem).__name__)


def test_the_keyboard_still_interrupts() -> None:
    def interrupted(self: Any, x: Any) -> Any:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        trace(hostile(interrupted), X)


def changes_everything(self: Any, x: Any) -> Any:
    nn.functional.linear = lambda *_: x
    nn.Linear.forward = lambda *_: x
    torch.Tensor.relu = lambda *_: x
    torch.set_default_dtype(torch.float64)
    torch.set_default_device("meta")
    torch.set_grad_enabled(True)
    torch.no_grad().__enter__()
    torch.autocast("cpu").__enter__()
    torch.set_num_threads(torch.get_num_threads() + 1)
    torch.autograd.set_detect_anomaly(True)
    torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t).__enter__()
    hooks.register_module_forward_hook(lambda *_: None)
    FlopCounterMode(display=False).__enter__()
    torch.utils._device.DeviceContext(torch.device("meta")).__enter__()
    return x + 1


@pytest.mark.parametrize("raises_too", [False, True])
@pytest.mark.parametrize("device", ["meta", "cpu"])
@pytest.mark.filterwarnings("ignore:Anomaly Detection")
def test_what_a_module_changes_in_torch_is_put_back(device: str, raises_too: bool) -> None:
    """And said; also where it raises afterwards."""

    def then(self: Any, x: Any) -> Any:
        changes_everything(self, x)
        if raises_too:
            raise ValueError("not today")
        return x

    before = torch.get_default_dtype(), torch.get_default_device(), torch.get_num_threads(), torch.Tensor.relu
    if raises_too:
        assert "not today" in failing(then, device=device).faults[0].message
    else:
        (note,) = trace(hostile(then), X, device=device).notes
        for words in ("torch.nn.functional.linear", "Linear.forward", "Tensor.relu", "the default dtype",
                      "hooks of all modules", "a dispatch mode", "anomaly detection"):  # fmt: skip
            assert words in note
    assert before == (torch.get_default_dtype(), torch.get_default_device(), torch.get_num_threads(), torch.Tensor.relu)
    assert not torch.is_autocast_enabled("cpu") and not torch.is_anomaly_enabled()
    assert torch._C._autograd._top_saved_tensors_default_hooks(True) is None
    assert trace(nn.Linear(3, 3), X, device=device).model_flops == 2 * 2 * 9


def test_random_numbers_go_on_as_if_nothing_was_drawn() -> None:
    model = hostile(lambda _, x: x * torch.rand_like(x))
    torch.manual_seed(3)
    expected = torch.rand(2)
    torch.manual_seed(3)
    trace(model, X, device="cpu")
    assert torch.equal(torch.rand(2), expected)


def test_what_torch_changes_itself_is_left() -> None:
    """Its compiler wraps functions of torch when it is loaded; taking that back would break it."""
    import torch._dynamo  # noqa: F401

    wrapped = nn.Module.__init__
    assert trace(hostile(lambda _, x: x), X).notes == ()
    assert nn.Module.__init__ is wrapped


def test_traces_inside_a_trace() -> None:
    found = []

    def nested(self: Any, x: Any) -> Any:
        found.append(trace(nn.Linear(5, 7), torch.zeros(1, 5), train=True).model_flops)
        return x

    assert trace(hostile(nested), X).model_flops >= 2 * 2 * 9
    assert found == [2 * 2 * 35]


def test_hooks_of_the_module_are_its_own() -> None:
    model, seen = hostile(lambda _, x: x), []
    handle = model[1].linear.register_forward_hook(lambda *_: seen.append(1))
    trace(model, X)
    assert seen == [1]
    handle.remove()
    assert not model[1].linear._forward_hooks


def test_hooks_left_by_a_forward_stay_on_the_copy() -> None:
    model = hostile(lambda self, x: (self.linear.register_forward_hook(lambda *_: None), x)[1])
    trace(model, X)
    assert not model[1].linear._forward_hooks


def test_running_statistics_are_not_moved() -> None:
    model = nn.BatchNorm1d(3)
    before = model.running_mean.clone(), int(model.num_batches_tracked)
    trace(model, torch.ones(4, 3), train=True, device="cpu")
    assert torch.equal(model.running_mean, before[0]) and int(model.num_batches_tracked) == before[1]


def test_nothing_to_train() -> None:
    with pytest.raises(SuanliError, match="no result needs a gradient"):
        trace(nn.Linear(3, 3).requires_grad_(False), X, train=True)


@pytest.mark.parametrize(
    ("inputs", "code"),
    [(None, "missing_option"), ("1xtwo", "bad_input"), ("1x2:int65", "bad_input"), ("x".join("1" * 11), "bad_input"),
     ("99999999999", "bad_input"), ("1x7", "module_failed")],
)  # fmt: skip
def test_inputs_that_cannot_be(inputs: Any, code: str) -> None:
    with pytest.raises(SuanliError) as caught:
        trace(nn.Linear(3, 3), inputs)
    assert caught.value.faults[0].code == code


@pytest.mark.parametrize(
    "text",
    ["torch:", "torch:os", "torch:no_such_package_here:f", "torch:math:nothing", "torch:math:pi", "torch:os:getcwd",
     "torch:os.path:join", "torch:a b:c", "torch:../x:y"],
)  # fmt: skip
def test_factories_that_are_none(text: str) -> None:
    with pytest.raises(SuanliError) as caught:
        load_factory(text)
    assert caught.value.faults[0].code == "bad_factory"
