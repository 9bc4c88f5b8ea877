// How large an array must be to lie in memory: STREAM's rule.
#pragma once

#include "kernel.hpp"

namespace paribus {

// Bytes of an array of each rank so that those of all ranks of a machine are together at least four
// times the last-level caches that they use, and at least a million numbers (stream.c of John D.
// McCalpin, "General rules"). A machine that names no cache counts as one of 32 MiB. Collective.
long array_beyond_caches(const Session& session);

}  // namespace paribus
