"""What is read of a spec as text, before anybody runs it: its words, and the files that users bring."""
