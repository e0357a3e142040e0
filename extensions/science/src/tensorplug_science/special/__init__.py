"""Special functions beyond those of the core; they appear in ``tensorplug.special``."""
