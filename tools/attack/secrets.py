"""Tokens in the environment: in no file that Paribus writes, and in nothing that it says."""

from __future__ import annotations

import gzip
import json
import sqlite3
import tarfile
import zlib
from pathlib import Path

from attack.arena import Arena
from attack.ground import MPI_STUDY, write_study
from attack.victim import Ended, clean, paribus

PREFIXES = (
    *(
        "UCX_",
        "SLURM_",
        "OMPI_MCA_x_",
        "OMPI_",
        "PMIX_",
        "PRTE_MCA_",
        "MPIR_CVAR_",
        "I_MPI_",
        "FI_",
    ),
    *(
        "NCCL_",
        "OMP_",
        "MKL_",
        "PARIBUS_",
        "PARIBUS_DELAY_",
        "PBS_",
        "LSB_",
        "KMP_",
        "GOMP_",
        "PSM2_",
    ),
    *("CUDA_", "LD_", "AWS_", "", "SLURM_SPANK_", "HYDRA_", "MV2_", "FLUX_", "DBUS_"),
)
WORDS = (
    *("PASS", "JWT", "auth", "AUTH", "PASSWORD", "PASSPHRASE", "PWD", "TOKEN", "SECRET", "API_KEY"),
    *("KEY", "CREDENTIALS", "COOKIE", "SESSION", "BEARER", "PRIVATE", "PAT", "SIGNATURE", "sas"),
    # Names that say nothing.
    *("ZZTOP", "PLUGIN_ARG", "X1", "URL"),
)
ALWAYS = ("UCX_PASS", "SLURM_JWT", "OMPI_MCA_x_auth")


def study(arena: Arena) -> None:
    """Run, report and audit a study of a shell script."""
    path = write_study(arena.folder, plan="blocks = 8")
    _study(arena, path)


def mpi(arena: Arena) -> None:
    """The same of MPI, whose kernels say more of their environment."""
    if not arena.ground.mpi_s:
        arena.skipped = "no MPI here"
        return
    path = arena.folder / "study.toml"
    path.write_text(MPI_STUDY)
    _study(arena, path)


def _study(arena: Arena, path: Path) -> None:
    tokens = _tokens(arena)
    for words in (
        ("run", path, "--out", arena.out),
        ("report", arena.out, "--json"),
        ("audit", arena.out, "--all"),
        ("audit", path, "--json"),
        ("run", path, "--dry-run", "--no-pilot"),
    ):
        ended = paribus(arena, *words, env=tokens)
        _silent(arena, ended, tokens, str(words[0]))
    for file in sorted(arena.out.rglob("*")):
        if file.is_file():
            _absent(arena, _readable(file), tokens, file.relative_to(arena.out).parts[0])


def record(arena: Arena) -> None:
    """Archive what the machine is."""
    tokens, archive = _tokens(arena), arena.folder / "machine.tar.gz"
    _silent(arena, paribus(arena, "record", "--out", archive, env=tokens), tokens, "record")
    if arena.expect(archive.exists(), "record writes no archive"):
        _absent(arena, gzip.decompress(archive.read_bytes()), tokens, "the archive of record")
        with tarfile.open(archive) as tar:
            for member in tar.getmembers():
                inside = tar.extractfile(member)
                if inside is not None:
                    _absent(arena, inside.read(), tokens, "the archive of record")
    ended = paribus(arena, "doctor", "--json", env=tokens)
    _silent(arena, ended, tokens, "doctor")


def _tokens(arena: Arena) -> dict[str, str]:
    """Return variables of which each has a secret of its own."""
    draw = arena.random
    names = {*ALWAYS, *(draw.choice(PREFIXES) + draw.choice(WORDS) for _ in range(40))}
    # These steer the victim itself or the shells below it.
    names -= {"PWD", "LD_PWD", "PARIBUS_CACHE"}
    return {name: f"hush{draw.getrandbits(80):020x}" for name in sorted(names)}


def _silent(arena: Arena, ended: Ended, tokens: dict[str, str], verb: str) -> None:
    clean(arena, ended, f"{verb} with secrets in the environment")
    _absent(arena, (ended.out + ended.err).encode(), tokens, f"what {verb} prints")


def _absent(arena: Arena, data: bytes, tokens: dict[str, str], where: str) -> None:
    found = [name for name, token in tokens.items() if token.encode() in data]
    some = ", ".join(sorted(found, key=lambda name: name not in ALWAYS)[:5])
    arena.expect(not found, f"values of {len(found)} of {len(tokens)} in {where}: {some}")


def _readable(file: Path) -> bytes:
    """Return the bytes of a file and, of a database, every value, unpacked where it is packed."""
    data = file.read_bytes()
    if not data.startswith(b"SQLite"):
        return data
    db = sqlite3.connect(file)
    try:
        tables = [
            name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type='table'")
        ]
        cells = [cell for t in tables for row in db.execute(f"SELECT * FROM {t}") for cell in row]
    finally:
        db.close()
    parts = [data]
    for cell in cells:
        parts.append(cell if isinstance(cell, bytes) else json.dumps(cell).encode())
        if isinstance(cell, bytes):
            try:
                parts.append(zlib.decompress(cell))
            except zlib.error:
                continue
    return b"\n".join(parts)


ATTACKS = (study, record, mpi)
