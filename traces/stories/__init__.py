"""Story files: steps of one trace in the notation of reports, checked against a spec like a recording."""
