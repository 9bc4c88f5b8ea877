"""Figures that somebody published, beside one's own."""
