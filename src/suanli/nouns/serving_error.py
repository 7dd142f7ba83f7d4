"""How far served times, throughput and energy are off: one quantity on one set of measured rows."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class ServingError:
    """Errors of one quantity on one set of rows. None: no bar, or not fitted."""

    quantity: str = field(metadata={"doc": "time between tokens, throughput, energy …"})
    source: str = field(metadata={"doc": "whose rows, and what was assumed"})
    n: int = field(metadata={"doc": "rows"})
    mean_fitted: float | None = field(metadata={"unit": "fraction", "doc": "mean |predicted/measured − 1| as fitted"})
    mean_held_out: float = field(metadata={"unit": "fraction", "doc": "the same, the fold left out"})
    median_fitted: float | None = field(metadata={"unit": "fraction", "doc": "median as fitted"})
    median_held_out: float = field(metadata={"unit": "fraction", "doc": "median, the fold left out"})
    bias_held_out: float = field(metadata={"unit": "fraction", "doc": "median of predicted/measured − 1"})
    judged: str = field(default="", metadata={"doc": "mean or median: which figure has a bar"})
    bar_fitted: float | None = field(default=None, metadata={"unit": "fraction", "doc": "largest aimed at"})
    bar_held_out: float | None = field(default=None, metadata={"unit": "fraction", "doc": "largest aimed at"})
    folds: tuple[tuple[str, int, float], ...] = field(default=(), metadata={"doc": "fold, rows, mean held out"})

    @property
    def met(self) -> bool | None:
        """Whether the figure that has bars is within them; None: it has none."""
        pairs = {
            "mean": ((self.mean_fitted, self.bar_fitted), (self.mean_held_out, self.bar_held_out)),
            "median": ((self.median_fitted, self.bar_fitted), (self.median_held_out, self.bar_held_out)),
        }.get(self.judged, ())
        bound = [(value, bar) for value, bar in pairs if value is not None and bar is not None]
        return all(value <= bar for value, bar in bound) if bound else None
