"""Every field of the answers says what it is, and in which unit."""

from __future__ import annotations

from dataclasses import fields

import pytest

from suanli.nouns.roofline import KernelGroup, Share, UsefulCheck


@pytest.mark.parametrize("noun", [KernelGroup, Share, UsefulCheck])
def test_fields_are_explained(noun: type) -> None:
    for each in fields(noun):
        assert each.metadata["doc"]
        if each.name.endswith(("_s", "flops", "bytes", "_fraction")):
            assert each.metadata["unit"] or each.name.endswith("_fraction")
