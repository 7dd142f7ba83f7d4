"""Frozen records of what Suanli speaks about; no input or output, no arithmetic beyond adding themselves up."""
