"""What workers have loaded before they are started: every verb's modules, but no framework."""

from importlib import import_module

MODULES = ("suanli.api", "suanli.api.explained", "suanli.api.folders", "suanli.api.layouts", "suanli.cli.main",
           "suanli.report", "suanli.web.call")  # fmt: skip

for _name in MODULES:
    import_module(_name)
