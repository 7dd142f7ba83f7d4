"""`python -m suanli`."""

from suanli.cli import main

main()
