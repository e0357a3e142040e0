"""What a backend runs of a program, what crosses the bus, and which kernel to write next."""
