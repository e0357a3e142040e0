"""Programs: inputs, calls and results, and how they run."""
