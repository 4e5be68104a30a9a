"""The files around the logs: folders, indexes, snapshots of producers, checkpoints, and the cluster's metadata."""
