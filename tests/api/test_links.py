"""Links as typed: every fault in the words of those who type them, none in the names of the code."""

from __future__ import annotations

import pytest

from suanli.api.links import TYPED, read_fabric
from suanli.catalog.devices import find_device
from suanli.errors import InputError, UnknownNameError

H100 = find_device("h100-sxm")
AS_TYPED = f"As typed: {TYPED}."

# text → every line of its error
BAD = [
    ("0x450GB/s+0GB/s:ring", [
        f"GPUs a node: not a number above 0 in --fabric; got 0. {AS_TYPED}",
        f"a node's adapters: not a number above 0 in --fabric; got 0.0. {AS_TYPED}",
        "unknown network 'ring' in --fabric; expected one of 2 known. Networks: infiniband, efa.",
    ]),
    ("8x0GB/s", [f"the link of a GPU: not a number above 0 in --fabric; got 0.0. {AS_TYPED}"]),
    ("8x450+400", [
        "a number without its unit in --fabric; got '450'; expected a number like 3350GB/s.",
        "a number without its unit in --fabric; got '400'; expected a number like 3350GB/s.",
    ]),
    ("hgx-h100:ring", ["unknown network 'ring' in --fabric; expected one of 2 known. Networks: infiniband, efa."]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "lines"), BAD, ids=[row[0] for row in BAD])
def test_faults_in_the_option_s_words(text: str, lines: list[str]) -> None:
    with pytest.raises(InputError) as problem:
        read_fabric(text, H100)
    assert str(problem.value).splitlines() == lines
    for name in ("gpus_per_node", "bytes_per_s", "--node", "Fabric", "fabric("):
        assert name not in str(problem.value)


def test_an_unknown_node_names_the_nearest() -> None:
    with pytest.raises(UnknownNameError) as problem:
        read_fabric("hgx-h1000", H100)
    assert str(problem.value).startswith("unknown node 'hgx-h1000' in --fabric; expected one of ")
    assert str(problem.value).endswith(f". Or GPUs a node with rates: {TYPED}.")
    assert problem.value.faults[0].nearest[0].startswith("hgx-h1")


def test_links_that_can_be() -> None:
    found = read_fabric("8x450GB/s+400GB/s:efa", H100)
    assert (found.gpus_per_node, found.link_bytes_per_s, found.nics_bytes_per_s) == (8, 450e9, 400e9)
    assert found.name == "8 × h100-sxm, efa"
    assert read_fabric(None, H100) == read_fabric("hgx-h100", H100)
