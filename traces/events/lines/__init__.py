"""Events as lines of JSON: read one by one, or in bulk by native code."""
