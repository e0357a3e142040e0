"""What a call would do, found out without running it."""
