"""What ``python -m tensorplug`` does: lists what is installed, and finds out what is wrong."""
