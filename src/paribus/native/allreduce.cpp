// Allreduce: the time until every rank has the sum of all ranks' vectors.
#include "common/collective.hpp"

using namespace paribus;

struct Allreduce : Collective {
    using Collective::Collective;
    static constexpr Spec spec() {
        Spec spec = collective("allreduce", "Time of MPI_Allreduce (sum of floats), slowest rank.");
        spec.sizes = "4:1048576";
        spec.least_size = sizeof(float);
        spec.element_size = sizeof(float);
        return spec;
    }
    const bool chars = session.like(Like::osu);  // OSU's default type
    const std::size_t elements = chars ? size : size / sizeof(float);

    void call(long) const {
        MPI_Allreduce(out.data, in.data, static_cast<int>(elements), chars ? MPI_CHAR : MPI_FLOAT,
                      MPI_SUM, comm);
    }
    void prepare() const {
        for (std::size_t i = 0; i < elements; ++i) {
            put(out, i, part(i, rank));
            put(in, i, -1);
        }
    }
    std::size_t expected() const { return elements; }
    long wrong() const {
        if (!chars) return first_wrong_sum(as<float>(in), elements, ranks, salt);
        for (std::size_t i = 0; i < elements; ++i)
            if (as<signed char>(in)[i] != value(i)) return static_cast<long>(i);
        return -1;
    }

private:
    template <class T>
    static T* as(const Buffer& buffer) {
        return reinterpret_cast<T*>(buffer.data);
    }
    void put(const Buffer& buffer, std::size_t i, int number) const {
        if (chars) as<signed char>(buffer)[i] = static_cast<signed char>(number);
        else as<float>(buffer)[i] = static_cast<float>(number);
    }
    static int value(std::size_t i) { return static_cast<int>(i % 100 + 1); }

    // Rank r's term at i. A sum of signed chars would saturate in some libraries and wrap in
    // others, so that of chars one in `ranks` is not zero.
    int part(std::size_t i, int r) const {
        if (!chars) return term(i, r, salt);
        const auto from = static_cast<unsigned>(r), all = static_cast<unsigned>(ranks);
        return (i + salt) % all == from ? value(i) : 0;
    }
};

int main(int argc, char** argv) { return run<Allreduce>(argc, argv); }
