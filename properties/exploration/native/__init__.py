"""Native search: its driver, its tables in memory, and the graph that is made of them."""
