// What the loader and the MPI library mapped into this process: objects with their build-ids, and
// what some of them say of themselves.
#pragma once

#include <map>
#include <string>

namespace paribus {

// The build-id of the object that holds `symbol`; "" where there is no such symbol.
std::string build_id_of(const char* symbol);

// Path to identity of every object in this process; the program itself is "program".
using Mapped = std::map<std::string, std::string>;

Mapped mapped_objects();

// As JSON, file name to identity; without those in `but`.
std::string text_of(const Mapped& objects, const Mapped& but = {});

// Twelve hex digits that differ where file names or build-ids do.
std::string hash_of(const Mapped& objects);

// Versions as the mapped libraries state them; "" for what is not mapped.
std::string ucx_version(const Mapped& objects);

std::string libfabric_version(const Mapped& objects);

// The kernels that OpenBLAS chose for this processor, as it names them ("Haswell").
std::string blas_core(const Mapped& objects);

}  // namespace paribus
