"""By family: which group a kernel is."""
