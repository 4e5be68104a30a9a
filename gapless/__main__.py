"""`python -m gapless`."""

from gapless.entry import main

main()
