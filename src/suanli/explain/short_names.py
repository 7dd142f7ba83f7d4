"""Names of kernels as people say them."""

from __future__ import annotations

import re

NAME = 40  # characters
_TEMPLATE = re.compile(r"<.*|\(.*")
_NOISE = re.compile(r"\(anonymous namespace\)::|\{lambda[^}]*\}|^void ")
_INNER = re.compile(r"\b(\w+(?:Functor\w*|_kernel_cuda|KernelImpl|KernelCUDA|Ops))\b")  # what a general kernel applies
_WRAPPER = re.compile(r"k?entry\d*|(device_)?kernel\d*", re.I)  # names that say nothing: what they run is an argument
_RUN = re.compile(r"\b(?!device_kernel\b)(\w+Kernel\w*|\w+_kernel\w*|cutlass\w*gemm\w*|Gemm\w+)\b")


def short(name: str, limit: int = NAME) -> str:
    """A kernel's name without namespaces, template arguments and parameters, cut to `limit` characters.

    Of a general kernel (`elementwise_kernel<…>`) what it applies is kept: elementwise_kernel: direct_copy_kernel_cuda.
    """
    plain = _NOISE.sub("", name)
    base = _TEMPLATE.sub("", plain).rsplit("::", 1)[-1] or plain
    if _WRAPPER.fullmatch(base) and (run := _RUN.search(plain, plain.find("<") + 1 or len(plain))):
        base = run[1]
    inner = _INNER.search(plain[len(base) :]) if "<" in plain else None
    text = f"{base}: {inner[1]}" if inner and inner[1] != base else base
    return text if len(text) <= limit else text[: limit - 1] + "…"
