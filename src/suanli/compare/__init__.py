"""The verb `compare`: a model through other counters, each in a process of its own, and why each differs.

`subject`, `record`, `books` and `child` are the other side, where torch and the tools are; `runner` bounds it. `places`
and `explain` find the causes in the books, `closed` those of formulas; `rules` and `like` give a tool's number without
the tool. `verdict` puts the answer together.
"""
