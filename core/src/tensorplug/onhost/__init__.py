"""What no device's ops can express, as pure functions of NumPy arrays, by family."""
