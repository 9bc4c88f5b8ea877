// Latency: half of a round trip of one message between two ranks.
#include "common/likes.hpp"
#include "common/sampling.hpp"

using namespace paribus;

int main(int argc, char** argv) {
    Session session({"latency", "Half of a round trip of one message between two ranks.",
                     Ranks::two, "1:1048576", 0},
                    argc, argv);
    const int other = 1 - session.rank;
    unsigned salt = 0;
    for (const long bytes : session.arguments.bytes) {
        const std::string where = Object().add("bytes", bytes).text();
        const auto size = static_cast<std::size_t>(bytes);
        const int count = static_cast<int>(bytes);
        // A page of room behind each: where MPI_Alloc_mem puts the two side by side, a message of
        // 4 KiB takes 3 % longer than in Intel's program (docs/fidelity.md).
        const std::size_t room = session.like(Like::imb) ? 4096 : 0;
        Buffer out(size + room, session.like(Like::imb)), in(size + room, session.like(Like::imb));
        session.give_up_if(out.data && in.data ? "" : "no memory left at " + where);

        const auto send = [&] { MPI_Send(out.data, count, MPI_BYTE, other, 1, session.comm); };
        const auto receive = [&] {
            MPI_Recv(in.data, count, MPI_BYTE, other, 1, session.comm, MPI_STATUS_IGNORE);
        };
        const auto round_trips = [&](long n) {
            if (session.rank == 0)
                for (long i = 0; i < n; ++i) {
                    send();
                    receive();
                    session.delay.spend();
                }
            else
                for (long i = 0; i < n; ++i) {
                    receive();
                    send();
                }
        };
        const auto prepare = [&] {
            ++salt;
            fill(out.data, size, session.rank, other, salt);
            poison(in.data, size, other, session.rank, salt);
        };
        const auto check = [&] {
            session.corrupt(in.data, size);
            session.verify(where, first_wrong(in.data, size, other, session.rank, salt), size);
        };

        prepare();
        Series series =
            session.like(Like::paribus)
                ? sample_flow(session, round_trips, session.rank == 0, where)
                : sample_flow_like(session, round_trips,
                                   counts_of(session, bytes, {10000, 100}, {1000, 10}), 1, where);
        check();
        prepare();
        round_trips(1);
        check();

        series.metric = "latency";
        series.unit = "us";
        for (double& sample : series.samples) sample *= 1e-3 / 2;
        session.keep(std::move(series));
    }
    return session.finish();
}
