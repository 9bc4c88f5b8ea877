// Allreduce: the time until every rank has the sum of all ranks' vectors.
#include "common/collective.hpp"

using namespace paribus;

namespace {

// Small whole numbers: their sum is exact in float below 2^24, whatever the order, for 10^5 ranks;
// a sum of signed chars would saturate in some libraries and wrap in others.
float part(std::size_t i, int rank, unsigned salt) {
    return static_cast<float>((i + static_cast<unsigned>(rank) * 7 + salt) % 16 + 1);
}

// One element in `ranks` is not zero on each rank, so that even a char cannot overflow.
char small_part(std::size_t i, int rank, int ranks, unsigned salt) {
    const auto turn = (i + salt) % static_cast<unsigned>(ranks);
    return turn == static_cast<unsigned>(rank) ? static_cast<char>(i % 100 + 1) : '\0';
}

}  // namespace

int main(int argc, char** argv) {
    Session session({"allreduce", "Time of MPI_Allreduce (sum of floats), slowest rank.",
                     Ranks::several, "4:1048576", 4, 4},
                    argc, argv);
    const int rank = session.rank, ranks = session.ranks;
    const bool chars = session.like(Like::osu);  // OSU's default type
    unsigned salt = 0;
    for (const long bytes : session.arguments.bytes) {
        const std::string where = Object().add("bytes", bytes).text();
        const auto size = static_cast<std::size_t>(bytes);
        const std::size_t elements = chars ? size : size / sizeof(float);
        Buffer out(size, session.like(Like::imb)), in(size, session.like(Like::imb));
        session.give_up_if(out.data && in.data ? "" : "no memory left at " + where);
        auto* const terms = reinterpret_cast<float*>(out.data);
        auto* const sums = reinterpret_cast<float*>(in.data);
        auto* const small_terms = reinterpret_cast<char*>(out.data);
        auto* const small_sums = reinterpret_cast<char*>(in.data);

        const auto call = [&](long) {
            MPI_Allreduce(out.data, in.data, static_cast<int>(elements),
                          chars ? MPI_CHAR : MPI_FLOAT, MPI_SUM, session.comm);
        };
        const auto prepare = [&] {
            ++salt;
            for (std::size_t i = 0; i < elements; ++i) {
                if (chars) {
                    small_terms[i] = small_part(i, rank, ranks, salt);
                    small_sums[i] = -1;
                } else {
                    terms[i] = part(i, rank, salt);
                    sums[i] = -1;
                }
            }
        };
        const auto check = [&] {
            session.corrupt(in.data, size);
            float expected[16] = {};  // part() repeats every 16 elements
            for (std::size_t i = 0; i < 16; ++i)
                for (int r = 0; r < ranks; ++r) expected[i] += part(i, r, salt);
            long wrong = -1;
            for (std::size_t i = 0; i < elements && wrong < 0; ++i) {
                const bool right = chars ? small_sums[i] == static_cast<char>(i % 100 + 1)
                                         : sums[i] == expected[i % 16];
                if (!right) wrong = static_cast<long>(i);
            }
            session.verify(where, wrong, elements);
        };
        measure_collective(session, where, bytes, call, prepare, check);
    }
    return session.finish();
}
