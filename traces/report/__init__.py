"""The result of a check: values, and their forms as text, page and table."""
