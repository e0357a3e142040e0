"""Special functions that are composed of others."""
