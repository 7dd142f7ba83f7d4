"""Results as people read them: one function a noun makes a `Document`; writers print or save it."""

from suanli.report.document import Document, Facts, Lines, Table
from suanli.report.pages import document_of

__all__ = ["Document", "Facts", "Lines", "Table", "document_of"]
