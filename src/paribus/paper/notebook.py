"""A Jupyter notebook (nbformat 4.5) that draws the figures anew from the files of a report."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from paribus.core import Judgement
from paribus.paper.markdown import escape

READ = """\
import matplotlib.pyplot as plt
import pandas as pd

plt.rcParams["text.parse_math"] = False     # names are shown as they are
cases = pd.read_csv("cases.csv")            # verdicts: docs/report.md describes the columns
values = pd.read_parquet("values.parquet")  # every figure of every launch: docs/report.md
"""
RATIOS = """\
# Headlines: ratio of each arm to the reference, with its interval; shaded: the margin.
heads = cases[(cases.kind == "headline") & cases.ratio.notna() & cases.size_known]
figure, axes = plt.subplots(figsize=(7, 1 + 0.4 * len(heads)))
names = heads.benchmark + ": " + heads.arm
low, high = heads.ratio - heads.ratio_low, heads.ratio_high - heads.ratio
axes.errorbar(heads.ratio, names, xerr=[low.fillna(0), high.fillna(0)], fmt="o", capsize=3)
axes.axvline(1, color="grey", linewidth=0.8)
for margin in heads.margin.unique():
    axes.axvspan(1 / (1 + margin), 1 + margin, color="grey", alpha=0.2)
axes.set_xlabel("ratio to the reference")
figure.tight_layout()
"""
LAUNCHES = """\
# Every launch: its figure over time, relative to the median of its case.
figure, axes = plt.subplots(figsize=(7, 4))
typical = values.groupby(["benchmark", "metric", "case"]).value.transform("median")
for arm, rows in values.assign(level=values.value / typical).groupby("arm"):
    launches = rows.groupby("launch").agg(level=("level", "median"), time=("time", "first"))
    axes.plot(launches.time, launches.level, "o", markersize=3, label=arm)
axes.set_xlabel("seconds since the first launch")
axes.set_ylabel("level (1: the median)")
axes.legend()
figure.tight_layout()
"""
CASES = """\
# Medians of launches by case, with their quartiles.
for (benchmark, metric, unit), rows in values.groupby(["benchmark", "metric", "unit"]):
    figure, axes = plt.subplots(figsize=(7, 3.5))
    for arm, own in rows.groupby("arm", sort=False):
        quartiles = own.groupby("case", sort=False).value.quantile([0.25, 0.5, 0.75]).unstack()
        places = range(len(quartiles))
        axes.plot(places, quartiles[0.5], marker="o", markersize=3, label=arm)
        axes.fill_between(places, quartiles[0.25], quartiles[0.75], alpha=0.2)
        axes.set_xticks(places, quartiles.index, rotation=60, ha="right")
    axes.set_yscale("log")
    axes.set_title(benchmark)
    axes.set_ylabel(f"{metric} ({unit})")
    axes.legend()
    figure.tight_layout()
"""


def document(judgement: Judgement) -> str:
    """Return the notebook as JSON; it reads the files beside it."""
    study = judgement.study
    question, answer, factor = map(escape, (study.question, judgement.sentence, study.factor))
    head = f"# {question}\n\n**{answer}**\n\nFactor: {factor}."
    cells = [_cell("markdown", head)]
    cells += [_cell("code", text) for text in (READ, RATIOS, CASES, LAUNCHES)]
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    notebook = {
        "cells": cells,
        "metadata": {"kernelspec": kernel},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(notebook, indent=1) + "\n"


def _cell(kind: str, text: str) -> dict[str, Any]:
    """Return a cell of the notebook, "markdown" or "code"."""
    code: dict[str, Any] = {"execution_count": None, "outputs": []} if kind == "code" else {}
    return {
        "cell_type": kind,
        "id": hashlib.sha256(text.encode()).hexdigest()[:8],
        "metadata": {},
        **code,
        "source": text,
    }
