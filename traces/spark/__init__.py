"""Events and stores as tables of Spark, and streams of event files that are judged as they arrive."""
