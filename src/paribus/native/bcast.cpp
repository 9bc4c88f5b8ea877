// Broadcast: the time until every rank has the root's data.
#include "common/collective.hpp"

using namespace paribus;

int main(int argc, char** argv) {
    Session session({"bcast", "Time of MPI_Bcast, slowest rank.", Ranks::several, "1:1048576"},
                    argc, argv);
    const int rank = session.rank;
    // Within a batch the next rank is root each time: it cannot send before it has received, so
    // that operations do not overlap. OSU's and Intel's programs keep rank 0.
    const bool rotate = session.like(Like::paribus);
    unsigned salt = 0;
    for (const long bytes : session.arguments.bytes) {
        const std::string where = Object().add("bytes", bytes).text();
        const auto size = static_cast<std::size_t>(bytes);
        Buffer out(size, session.like(Like::imb)), in(size, session.like(Like::imb));
        session.give_up_if(out.data && in.data ? "" : "no memory left at " + where);
        int root = 0;
        const auto call = [&](long i) {
            root = rotate ? static_cast<int>(i % session.ranks) : 0;
            MPI_Bcast(rank == root ? out.data : in.data, static_cast<int>(bytes), MPI_BYTE, root,
                      session.comm);
        };
        const auto prepare = [&] {
            ++salt;
            fill(out.data, size, rank, 0, salt);
            poison(in.data, size, 0, 0, salt);
        };
        const auto check = [&] {
            if (rank != root) session.corrupt(in.data, size);
            const long wrong = rank == root ? -1 : first_wrong(in.data, size, root, 0, salt);
            session.verify(where, wrong, rank == root ? 0 : size);
        };
        measure_collective(session, where, bytes, call, prepare, check);
    }
    return session.finish();
}
