// The loop over cases that the kernels share, and the part of a case that is the same in all.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "likes.hpp"
#include "sampling.hpp"

namespace paribus {

// One case while it is measured: its buffers and what they carry. A kernel is a struct that
// derives from it and has
//   static constexpr Spec spec()  what it is
//   void call(long i)             this rank's part of operation `i` of a sample
//   double figure(double ns)      its metric, from the nanoseconds of one operation
//   void prepare()                fills `out`, and makes every byte of `in` wrong
//   std::size_t expected()        how many bytes or elements this rank is to receive
//   long wrong()                  the first of them that is not as it should be, or -1
// All of these are resolved when compiled: nothing virtual is called in a measured loop.
struct Case {
    Case(Session& s, long bytes) : session(s), count(static_cast<int>(bytes)) {}

    Session& session;
    const int count;  // bytes of one message
    const std::size_t size = static_cast<std::size_t>(count);
    const int rank = session.rank, ranks = session.ranks;
    const MPI_Comm comm = session.comm;
    const std::size_t received = blocks(size, session.spec.in_for_each_rank);  // by one operation

private:
    std::unique_ptr<Buffer> own_out_, own_in_;

public:
    Buffer& out = buffer(own_out_, session.kept_out, session.spec.out_for_each_rank);
    Buffer& in = buffer(own_in_, session.kept_in, session.spec.in_for_each_rank);
    unsigned salt = 0;  // another one in each round of data

    // What there is to say beside the figures: an object of JSON.
    std::string more() const { return ""; }

private:
    std::size_t blocks(std::size_t each, bool for_each_rank) const {
        return each * static_cast<std::size_t>(for_each_rank ? ranks : session.spec.blocks);
    }
    // Of this case; OSU's programs have one of the largest size for all, which stays where it is.
    Buffer& buffer(std::unique_ptr<Buffer>& own, std::unique_ptr<Buffer>& kept,
                   bool for_each_rank) const {
        const bool osu = session.like(Like::osu), imb = session.like(Like::imb);
        const auto& all = session.arguments.bytes;
        const long most = osu ? *std::max_element(all.begin(), all.end()) : count;
        std::unique_ptr<Buffer>& which = osu ? kept : own;
        if (!which)
            which = std::make_unique<Buffer>(blocks(static_cast<std::size_t>(most), for_each_rank) +
                                                 (imb ? session.spec.imb_room : 0),
                                             imb);
        return *which;
    }
};

// Samples of one case, as Paribus takes them or as the program that --like names.
template <class Kernel, class Operation>
Series sample(Session& session, Operation operation, long bytes, const std::string& where) {
    constexpr Spec spec = Kernel::spec();
    if constexpr (spec.likes)
        if (!session.like(Like::paribus)) {
            const Counts counts = counts_of(session, bytes);
            return spec.pairs ? sample_flow_like(session, operation, counts, where)
                              : sample_together_like(session, operation, counts, where);
        }
    const bool delays = !spec.pairs || session.rank < session.ranks / 2;
    if constexpr (spec.start == Start::flow) return sample_flow(session, operation, delays, where);
    else return sample_together(session, operation, delays, where);
}

// Measures every case that was asked for. The data are checked after the samples and after one
// more operation on new data, which shows that they are not left over from the first; neither is
// measured. Collective.
template <class Kernel>
void measure(Session& session) {
    unsigned salt = 0;
    for (const long bytes : session.arguments.bytes) {
        const std::string where = session.case_text(bytes);
        Kernel kernel(session, bytes);
        session.give_up_if(kernel.out.data && kernel.in.data ? "" : "no memory left at " + where);
        const auto operation = [&](long n) {
            for (long i = 0; i < n; ++i) {
                kernel.call(i);
                session.delay();
            }
        };
        const auto prepare = [&] {
            kernel.salt = ++salt;
            kernel.prepare();
        };
        const auto check = [&] {
            const std::size_t n = kernel.expected();
            if (n > 0) session.corrupt(kernel.in.data, kernel.received);
            session.verify(where, n > 0 ? kernel.wrong() : -1, n);
        };
        prepare();
        Series series = sample<Kernel>(session, operation, bytes, where);
        check();
        prepare();
        operation(1);
        check();
        for (double& value : series.samples) value = kernel.figure(value);
        series.more = kernel.more();
        session.keep(std::move(series));
    }
}

// All of a kernel that measures case after case; returns the exit code of main.
template <class Kernel>
int run(int argc, char** argv) {
    Session session(Kernel::spec());
    session.start(argc, argv);
    measure<Kernel>(session);
    return session.finish();
}

}  // namespace paribus
