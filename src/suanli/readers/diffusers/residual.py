"""What UNets and autoencoders share: the residual block, and the steps to half and to twice the size."""

from __future__ import annotations

from suanli.readers.diffusers.pieces import act, linear
from suanli.readers.hf.maps import Net


def resnet(net: Net, width: int, temb: int | None = None, *, scaled: bool = False) -> None:
    """Norm, 3×3, the step's shift (and scale), norm, 3×3, and a 1×1 past them where the width changes."""
    into = net.channels
    net.norm("norm1")
    net.conv("conv1", width, 3, bias=True)
    if temb is not None:
        net.add(act("time_emb_proj.act", temb), linear("time_emb_proj", temb, 2 * width if scaled else width))
    net.norm("norm2")
    net.conv("conv2", width, 3, bias=True)
    if into != width:
        net.channels = into
        net.conv("conv_shortcut", width, 1, bias=True)


def down(net: Net, name: str, *, padding: int = 1) -> None:
    """A 3×3 with stride 2; without padding one row and one column of nothing are added."""
    size = tuple((each + max(1, 2 * padding) - 3) // 2 + 1 for each in net.size)
    net.conv(f"{name}.downsamplers.0.conv", net.channels, 3, 2, bias=True, out=size)


def up(net: Net, name: str, size: tuple[int, ...]) -> None:
    """The map repeated to a size, then a 3×3."""
    net.size = size
    net.conv(f"{name}.upsamplers.0.conv", net.channels, 3, bias=True)
