"""Points at which gradients are tried, and the expected slopes."""
