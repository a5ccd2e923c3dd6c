"""`python -P -m gridmill`: the command line."""

from gridmill.cli import main

main()
