"""Cases derived from a kernel's own: other sizes, ranks, layouts, calls before."""
