"""What the kernel `loader` loads: shared libraries or Python modules, generated and cached."""

from __future__ import annotations

import hashlib
from pathlib import Path

from paribus.core import Mpi, UserError
from paribus.launch.machine import MADE, Machine
from paribus.launch.toolchain import compiler_behind


def loaded_path(count: int, functions: int, kind: str, mpi: Mpi, machine: Machine) -> Path:
    """Return the directory of `count` "libraries" or "python" modules (`kind`), made if missing."""
    if kind == "python":
        return modules_path(count, functions, machine)
    return libraries_path(count, functions, mpi, machine)


def libraries_path(count: int, functions: int, mpi: Mpi, machine: Machine) -> Path:
    """Return a directory of `count` shared libraries of `functions` functions each.

    libparibus_0000.so and the following are generated, and compiled with the compiler behind
    `mpi`'s wrapper; native/loader.cpp relies on their contents. Errors as kernel_path.
    """
    compiler, wrapped = compiler_behind(mpi, machine)
    first = _library_source(0, functions)
    parts = [compiler, wrapped, str(mpi), machine.architecture, first, str(count)]
    key = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]
    target = machine.cache() / "libraries" / f"{count}x{functions}-{key}"
    plain = wrapped.split()[0]
    names = [f"libparibus_{i:04d}" for i in range(count)]
    files = {f"{name}.cpp": _library_source(i, functions).encode() for i, name in enumerate(names)}
    # Many sources in one command: starting the compiler costs more than compiling one of them.
    commands = [["mkdir", MADE]]
    for some in (names[i : i + 64] for i in range(0, count, 64)):
        commands.append([plain, "-O1", "-fPIC", "-c", *(f"{name}.cpp" for name in some)])
    for name in names:
        commands.append([plain, "-shared", f"{name}.o", "-o", f"{MADE}/{name}.so"])
    machine.build(target, files, commands, mpi.env)
    return target


def modules_path(count: int, functions: int, machine: Machine) -> Path:
    """Return a directory of `count` Python modules of `functions` functions each, byte-compiled.

    paribus_0000.pyc and the following are made by the python3 of `machine`, with the functions
    of the libraries. Raises UserError as kernel_path, and if there is no python3.
    """
    version = machine.capture(["python3", "-c", "import sys; print(sys.version)"])
    if version.exit_code:
        raise UserError("there is no python3", place=machine.at("PATH"), fix="install it")
    parts = [version.stdout, _module_source(0, functions), str(count)]
    key = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]
    target = machine.cache() / "libraries" / f"{count}x{functions}-python-{key}"
    files = {f"paribus_{i:04d}.py": _module_source(i, functions).encode() for i in range(count)}
    compiling = ["python3", "-m", "compileall", "-q", "-b", "."]
    commands = [["mkdir", MADE], compiling, ["sh", "-c", f"mv paribus_*.pyc {MADE}"]]
    machine.build(target, files, commands, {})
    return target


def _module_source(module: int, functions: int) -> str:
    return "".join(
        f"def paribus_{module:04d}_{f:04d}(x):\n    return x + {module * 1000 + f}\n\n\n"
        for f in range(functions)
    )


def _library_source(library: int, functions: int) -> str:
    """Return the source of one library: functions whose value native/loader.cpp checks."""
    name = f"paribus_{library:04d}"
    return "".join(
        f'extern "C" int {name}_{f:04d}(int x) {{ return x + {library * 1000 + f}; }}\n'
        for f in range(functions)
    )
