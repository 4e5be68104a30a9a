"""Terms and decision trees: a spec's functions as values, for readers that compile them."""
