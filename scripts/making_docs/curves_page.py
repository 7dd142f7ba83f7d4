"""docs/curves.md: the device curves with the errors of their fits."""

from __future__ import annotations

from making_docs.markdown import MADE, Rows, code, table
from suanli.catalog.curves import DeviceCurves, devices_with_curves, find_curves
from suanli.catalog.fabrics import node_fabric
from suanli.units import KILO, TERA


def curves_page() -> str:
    """docs/curves.md."""
    every = [find_curves(name) for name in devices_with_curves()]
    h100 = find_curves("h100-sxm")
    rate = 2 * 8192**3 / h100.matmul_s(8192, 8192, 8192) / TERA
    reduce_s = h100.collective_s("all_reduce", 2**30, 64, node_fabric("hgx-h100"))
    example = EXAMPLE_CURVES.replace("{RATE}", f"{rate:.0f}").replace("{MS}", f"{reduce_s * KILO:.1f}")
    measured, scaled = ([each for each in every if (each.extrapolated is None) == own] for own in (True, False))
    first = measured[0].file
    relatives: Rows = [(code(each.device.short_id), code(str(each.extrapolated)), each.note) for each in scaled]
    return MADE + "\n".join((
        "# Device curves\n",
        "How long a kernel or a collective takes on a device. The forms are [formulas](formulas.md) (`matmul_s`, "
        "`attention_s`, `memory_pass_s`, `link_transfer_s`, `ring_s`, `tree_all_reduce_s` and those they call); the "
        "numbers of a device are fitted to measured kernel times and ship as data, `src/suanli/catalog/curves/*.toml`. "
        "All of it takes arrays, so that a grid of layouts is one call.\n",
        example,
        f"## Measured\n\nData: {first.data}. Command: `{first.command}`. Errors are means of |predicted/measured − 1|; "
        "held out are whole shapes, a fifth at a time. The times are those of a micro-benchmark, forward layout only: "
        "no launch from Python, operands warm in the cache, clocks free to boost. A long run reaches about 0.8 to 0.9 "
        "of these rates, which is for the software stack's profile to say (`at_sustained`). Nothing was timed across "
        "nodes and no backward kernel of attention: the latencies and ratios used there, with their sources, stand in "
        "`networks.toml` and beside each attention curve.\n",
        table(("device", "curve", "kernels of", "counted on", "n", "fitted", "held out", "median", "9th decile"),
              [row for each in measured for row in _fits(each)], "----rrrrr"),
        "\n## Scaled from a relative\n\nNothing was measured on these. They take the curves of a relative, scaled by "
        "their own peaks, memory bandwidth and multiprocessors, and say so (`extrapolated`).\n",
        table(("device", "curves of", "why"), relatives),
        "",
    ))  # fmt: skip


EXAMPLE_CURVES = """```python
>>> from suanli.catalog.curves import find_curves
>>> from suanli.catalog.fabrics import node_fabric
>>> h100 = find_curves("h100-sxm")
>>> f"{2 * 8192**3 / h100.matmul_s(8192, 8192, 8192) / 1e12:.0f} TFLOP/s"
'{RATE} TFLOP/s'
>>> f"{h100.collective_s('all_reduce', 2**30, 64, node_fabric('hgx-h100')) * 1e3:.1f} ms"
'{MS} ms'
```
"""


def _fits(curves: DeviceCurves) -> Rows:
    """A row for every curve of a measured device."""
    file = curves.file
    sections = {"product": file.matmul, "attention": file.attention, "experts": file.experts, "": file.collectives}
    fits = [(f"{name} {key}", curve.fit) for name, kind in sections.items() for key, curve in kind.items()]
    return [
        (code(curves.device.short_id), name.strip(), fit.engine, fit.on + (f"; {fit.aside}" if fit.aside else ""),
         f"{fit.n:,}", *(f"{error:.1%}" for error in (fit.mape_fitted, fit.mape_held_out, fit.median_held_out,
                                                      fit.p90_held_out)))
        for name, fit in [*fits, ("memory", file.memory.fit)]
    ]  # fmt: skip
