"""Any store behind a pipe: its process is killed, interrupted, forked, limited, and judged by what it acknowledged."""
