"""Values of a spec as terms of Z3: truth values, numbers, Maps, and counts with their laws."""
