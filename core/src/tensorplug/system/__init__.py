"""What the core runs on: distributions, files, processes, and texts from outside."""
