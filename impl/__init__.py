"""How it is done fast: an embeddable transactional log. Empty so far; README.md says what will be here."""
