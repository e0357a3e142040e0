"""Kernels written once: forms as groups, schedules for devices, dialects for compilers."""
