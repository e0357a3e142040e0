"""What a kernel spec, a table, a backend and a hook are; knows neither tensors nor the engine."""
