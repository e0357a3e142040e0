"""The complement of the error function; other special functions are in tensorplug-science."""
