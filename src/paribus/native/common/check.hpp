// Buffers, the data they carry, and the proof that it arrived.
#pragma once

#include <mpi.h>

#include <cstdlib>
#include <cstring>

namespace paribus {

// Memory with every page touched: page-aligned, or from MPI_Alloc_mem, which some libraries serve
// from memory that other ranks can read. `data` is null where there is none left.
class Buffer {
public:
    explicit Buffer(std::size_t bytes, bool from_mpi = false) : from_mpi_(from_mpi) {
        const std::size_t least = bytes > 0 ? bytes : 1;
        void* memory = nullptr;
        if (from_mpi_) {
            if (MPI_Alloc_mem(static_cast<MPI_Aint>(least), MPI_INFO_NULL, &memory) != MPI_SUCCESS)
                return;
        } else if (posix_memalign(&memory, 4096, least) != 0) {
            return;
        }
        data = static_cast<unsigned char*>(memory);
        if (data != nullptr) std::memset(data, 0, bytes);
    }
    ~Buffer() {
        if (data != nullptr && from_mpi_) MPI_Free_mem(data);
        else std::free(data);
    }
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;

    unsigned char* data = nullptr;

private:
    bool from_mpi_;
};

// Byte `i` of what `from` sends to `to` in round `salt`: differs by position within 256 bytes and
// between blocks of 256, and by sender, receiver and round, so that a message that is shifted,
// stale or from elsewhere is seen.
inline unsigned char pattern(std::size_t i, int from, int to, unsigned salt) {
    return static_cast<unsigned char>(i * 31 + (i >> 8) * 7 + static_cast<unsigned>(from) * 101 +
                                      static_cast<unsigned>(to) * 57 + salt * 13 + 1);
}

inline void fill(unsigned char* data, std::size_t bytes, int from, int to, unsigned salt) {
    for (std::size_t i = 0; i < bytes; ++i) data[i] = pattern(i, from, to, salt);
}

// Makes sure that no byte is right before the message comes.
inline void poison(unsigned char* data, std::size_t bytes, int from, int to, unsigned salt) {
    for (std::size_t i = 0; i < bytes; ++i)
        data[i] = static_cast<unsigned char>(~pattern(i, from, to, salt));
}

// The first position that is wrong, or -1.
inline long first_wrong(const unsigned char* data, std::size_t bytes, int from, int to,
                        unsigned salt) {
    for (std::size_t i = 0; i < bytes; ++i)
        if (data[i] != pattern(i, from, to, salt)) return static_cast<long>(i);
    return -1;
}

// Rank `r`'s term at `i` of a sum of floats: a small whole number that repeats every 16 elements,
// so the sum is exact below 2^24 in any order, for 10^5 ranks.
inline int term(std::size_t i, int r, unsigned salt) {
    return static_cast<int>((i + static_cast<unsigned>(r) * 7 + salt) % 16 + 1);
}

// A rank's terms, and a place for their sums where none is right yet.
inline void fill_terms(float* terms, float* sums, std::size_t n, int rank, unsigned salt) {
    for (std::size_t i = 0; i < n; ++i) {
        terms[i] = static_cast<float>(term(i, rank, salt));
        sums[i] = -1;
    }
}

// The first sum of all ranks' terms that is wrong, or -1.
inline long first_wrong_sum(const float* sums, std::size_t n, int ranks, unsigned salt) {
    int expected[16] = {};
    for (std::size_t i = 0; i < 16; ++i)
        for (int r = 0; r < ranks; ++r) expected[i] += term(i, r, salt);
    for (std::size_t i = 0; i < n; ++i)
        if (sums[i] != static_cast<float>(expected[i % 16])) return static_cast<long>(i);
    return -1;
}

}  // namespace paribus
