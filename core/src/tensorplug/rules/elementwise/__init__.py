"""Rules of functions of each element."""
