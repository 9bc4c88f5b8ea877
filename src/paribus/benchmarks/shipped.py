"""Inputs that ship with us."""

from importlib.resources import files


def shipped(name: str) -> str:
    """Return the text of an input that ships with us, in the folder inputs."""
    return (files("paribus.benchmarks") / "inputs" / name).read_text(encoding="utf-8")
