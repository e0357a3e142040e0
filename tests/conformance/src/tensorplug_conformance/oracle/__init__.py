"""Independent references: wide floating arithmetic and exact Python integers.

An oracle takes the inputs and attributes of a case and returns the expected outputs, by an
independent formula. Oracles import neither a backend nor the core's ops.
"""
