"""A layout that lies outside of `traces/`: files of tokens in tokens/, of which each must have one at least."""
