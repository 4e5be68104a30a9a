"""The recorder: every step of a store as an event of the event schema."""
