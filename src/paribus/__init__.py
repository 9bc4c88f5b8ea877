"""Controlled comparisons of HPC and AI cluster platforms."""

__version__ = "0.1.0"
