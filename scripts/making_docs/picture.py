"""Reports as the terminal shows them, as SVG."""

from __future__ import annotations

import io
import re

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console

import suanli
from making_docs.conventions_page import EXAMPLE
from suanli.nouns.result import Result
from suanli.report import Document, document_of
from suanli.report.text import print_document

_FACE = re.compile(r"@font-face \{\{.*?\}\}\s*", re.DOTALL)


def picture(command: str, result: Result, blocks: int) -> str:
    """The first blocks of a report as the terminal shows them, as SVG with no font from elsewhere."""
    document = document_of(result)
    screen = Console(record=True, width=92, file=io.StringIO(), force_terminal=True, color_system="truecolor",
                     highlight=False)  # fmt: skip
    screen.print(f"$ {command}", style="bold green", markup=False)
    screen.print()
    print_document(Document(document.headline, document.blocks[:blocks]), screen)
    layout = _FACE.sub("", CONSOLE_SVG_FORMAT).replace("Fira Code, monospace", "Menlo, Consolas, monospace")
    return screen.export_svg(title="suanli", code_format=layout, unique_id="suanli") + "\n"


def mfu_picture() -> str:
    """docs/img/mfu.svg."""
    command = "suanli mfu llama-3-8b --gpu h100-sxm --seq 8192 --tokens-per-second 8000"
    return picture(command, suanli.mfu("llama-3-8b", **EXAMPLE), 2)
