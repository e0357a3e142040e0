"""Independent references: wide floating arithmetic and exact Python integers.

An oracle takes the inputs and attributes of a case and returns what is right, by a formula of
its own. Oracles import neither a backend nor the core's ops.
"""
