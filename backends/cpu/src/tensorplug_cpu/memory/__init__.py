"""Memory of arrays: recycled, counted, or owned by one tensor."""
