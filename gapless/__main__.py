"""`python -m gapless`."""

from gapless.cli import main

main()
