"""Special functions: gamma, error and Bessel functions, and functions of probabilities."""
