"""Performance: how long each kernel takes, and how long it could. It is never a condition."""
