// Alltoall: the time until every rank has what every rank had for it.
#include "common/collective.hpp"

using namespace paribus;

int main(int argc, char** argv) {
    Session session({"alltoall", "Time of MPI_Alltoall, slowest rank.", Ranks::several, "1:1048576",
                     1, 1, 0, 2},
                    argc, argv);
    const int rank = session.rank, ranks = session.ranks;
    unsigned salt = 0;
    for (const long bytes : session.arguments.bytes) {
        const std::string where = Object().add("bytes", bytes).text();
        const auto size = static_cast<std::size_t>(bytes);
        const std::size_t all = size * static_cast<std::size_t>(ranks);
        Buffer out(all, session.like(Like::imb)), in(all, session.like(Like::imb));
        session.give_up_if(out.data && in.data ? "" : "no memory left at " + where);
        const auto call = [&](long) {
            MPI_Alltoall(out.data, static_cast<int>(bytes), MPI_BYTE, in.data,
                         static_cast<int>(bytes), MPI_BYTE, session.comm);
        };
        const auto block = [&](Buffer& b, int r) {
            return b.data + static_cast<std::size_t>(r) * size;
        };
        const auto prepare = [&] {
            ++salt;
            for (int r = 0; r < ranks; ++r) {
                fill(block(out, r), size, rank, r, salt);
                poison(block(in, r), size, r, rank, salt);
            }
        };
        const auto check = [&] {
            session.corrupt(in.data, all);
            long wrong = -1;
            for (int r = 0; r < ranks && wrong < 0; ++r) {
                wrong = first_wrong(block(in, r), size, r, rank, salt);
                if (wrong >= 0) wrong += r * bytes;
            }
            session.verify(where, wrong, all);
        };
        measure_collective(session, where, bytes, call, prepare, check);
    }
    return session.finish();
}
