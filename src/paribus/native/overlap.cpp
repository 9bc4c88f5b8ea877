// Overlap: how much of a non-blocking collective hides behind computation.
//
// As OSU's osu_iallreduce and osu_ialltoall define it: the collective alone (pure), computation
// that takes as long (compute), and the collective with the computation between its start and its
// wait (total). What is not hidden is total - compute; their overlap is 100 % less the share that
// this is of pure, but at least 0.
#include "common/collective.hpp"

using namespace paribus;

namespace {

struct Overlap : Collective {
    static constexpr Option options[] = {{"collective",
                                          "allreduce",
                                          "allreduce (sum of floats) or alltoall",
                                          0,
                                          0,
                                          false,
                                          {"allreduce", "alltoall"}},
                                         {}};
    static constexpr Spec spec() {
        Spec spec = collective("overlap", "How much of a non-blocking collective hides.");
        spec.sizes = "4:1048576";
        spec.least_size = sizeof(float);
        spec.element_size = sizeof(float);
        spec.out_for_each_rank = true;
        spec.in_for_each_rank = true;
        spec.likes = false;
        spec.options = options;
        return spec;
    }
    using Collective::Collective;
    const bool sums = session.arguments.text.at("collective") == "allreduce";
    const std::size_t elements = size / sizeof(float);

    // What lies between start and wait is `compute`.
    template <class Compute>
    void call(Compute compute) {
        MPI_Request request;
        if (sums)
            MPI_Iallreduce(out.data, in.data, static_cast<int>(elements), MPI_FLOAT, MPI_SUM, comm,
                           &request);
        else MPI_Ialltoall(out.data, count, MPI_BYTE, in.data, count, MPI_BYTE, comm, &request);
        compute();
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        session.delay();
    }

    void prepare() {
        ++salt;
        if (!sums) {
            for (int r = 0; r < ranks; ++r) fill(block(out, r), size, rank, r, salt);
            poison_blocks(rank);
            return;
        }
        fill_terms(floats(out), floats(in), elements, rank, salt);
    }
    void check(const std::string& where) {
        session.corrupt(in.data, sums ? size : received);
        session.verify(
            where, sums ? first_wrong_sum(floats(in), elements, ranks, salt) : wrong_block(rank),
            sums ? elements : received);
    }

private:
    static float* floats(const Buffer& buffer) { return reinterpret_cast<float*>(buffer.data); }
};

double median(std::vector<double> values) {
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}

void keep(Session& session, Series series, const char* metric) {
    series.metric = metric;
    for (double& value : series.samples) value *= 1e-3;
    session.keep(std::move(series));
}

// Leaves what of the collective is not hidden, in percent. The computation is the same each time:
// the least that it took is what it takes undisturbed, and not more than was aimed at.
void keep_exposed(Session& session, const Series& pure, const Series& compute, Series total) {
    const double alone = median(pure.samples);
    const double least =
        std::min(alone, *std::min_element(compute.samples.begin(), compute.samples.end()));
    for (double& value : total.samples) value = 100 * (value - least) / alone;
    const double shortest = *std::min_element(total.samples.begin(), total.samples.end());
    session.give_up_if(session.rank > 0 || shortest > 0
                           ? ""
                           : "at " + total.case_text +
                                 " computation took longer alone than beside the collective: the "
                                 "processor's clock changed; launch it again");
    total.metric = "exposed";
    total.unit = "percent";
    total.starts.clear();
    total.more = Object().add("overlap", std::max(0.0, 100 - median(total.samples))).text();
    session.keep(std::move(total));
}

void measure(Session& session, long bytes, unsigned& salt) {
    const std::string where = session.case_text(bytes);
    Overlap kernel(session, bytes);
    kernel.salt = salt;
    session.give_up_if(kernel.out.data && kernel.in.data ? "" : "no memory left at " + where);
    std::uint64_t loops = 0;
    const auto work = [&] { spin(loops); };
    const auto pure_of = [&](long n) {
        for (long i = 0; i < n; ++i) kernel.call([] {});
    };
    const auto compute_of = [&](long n) {
        for (long i = 0; i < n; ++i) work();
    };
    const auto total_of = [&](long n) {
        for (long i = 0; i < n; ++i) kernel.call(work);
    };
    kernel.prepare();
    Series pure = sample_together(session, pure_of, true, where);
    loops = static_cast<std::uint64_t>(median(pure.samples) / session.clock.spin_ns);
    Series compute = sample_together(session, compute_of, false, where);
    const Series total = sample_together(session, total_of, true, where);
    kernel.check(where);
    kernel.prepare();
    total_of(1);
    kernel.check(where);
    pure.starts.clear();
    compute.starts.clear();
    keep_exposed(session, pure, compute, total);
    keep(session, total, "total");
    keep(session, pure, "pure");
    keep(session, compute, "compute");
    salt = kernel.salt;
}

}  // namespace

int main(int argc, char** argv) {
    Session session(Overlap::spec());
    session.start(argc, argv);
    unsigned salt = 0;
    for (const long size : session.arguments.bytes) measure(session, size, salt);
    return session.finish();
}
