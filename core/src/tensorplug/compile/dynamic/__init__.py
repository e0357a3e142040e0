"""Dynamic sizes: one program for many sizes of an axis, by padding."""
