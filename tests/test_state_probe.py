"""The state probe of the kernels: settings of malloc must not look like another machine."""

from __future__ import annotations

from pathlib import Path

from native import NATIVE, compiled
from processes import ran

PROGRAM = """
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <new>

#include "common/probe.hpp"

static std::size_t most = 0;

void* operator new(std::size_t size) {
    if (size > most) most = size;
    if (void* found = std::malloc(size)) return found;
    throw std::bad_alloc();
}
void* operator new[](std::size_t size) { return operator new(size); }
void operator delete(void* data) noexcept { std::free(data); }
void operator delete(void* data, std::size_t) noexcept { std::free(data); }
void operator delete[](void* data) noexcept { std::free(data); }
void operator delete[](void* data, std::size_t) noexcept { std::free(data); }

int main() {
    const auto state = paribus::probe_state({}, true);
    std::printf("%d %zu\\n", state.triad_gbps > 0, most);
}
"""


def test_the_bandwidth_probe_takes_no_memory_from_malloc(tmp_path: Path) -> None:
    """With huge pages by GLIBC_TUNABLES the probe was 1.2 times as fast, which was warned of."""
    source, program = tmp_path / "probe.cpp", tmp_path / "probe"
    source.write_text(PROGRAM)
    parts = [str(NATIVE / "common" / f"{one}.cpp") for one in ("probe", "clock", "machine", "json")]
    said = compiled(source, program, f"-I{NATIVE}", *parts)
    assert said == ""
    done = ran([program], timeout=60, code=0)
    measured, most = map(int, done.stdout.split())
    assert measured == 1
    assert most < 1 << 20
