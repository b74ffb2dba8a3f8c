"""Provider sync: one loop per provider, run by the node that holds its lease."""
