"""Stories as files: steps of one trace in the notation of reports, which are held against a spec like a recording."""
