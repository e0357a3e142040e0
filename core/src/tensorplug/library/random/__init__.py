"""Random numbers: counter-based generators, distributions, sampling."""
