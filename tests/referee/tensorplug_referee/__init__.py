"""Other libraries as backends of tensorplug: tables of their functions, and nothing else.

An adapter names the function of the library that computes a kernel, moves axes to where that
function has them, and translates errors. It never mends a result.
"""
