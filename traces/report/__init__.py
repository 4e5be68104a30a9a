"""What a check says: values, and their forms as text, page and table."""
