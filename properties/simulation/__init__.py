"""A world for a store to run in: a disk that can be lost, and choices and schedules as values. It knows no store."""
