// Training proxy: the communication of data-parallel training, without the training.
//
// A step is what PyTorch's DistributedDataParallel does: a forward pass, then a backward pass
// during which the gradients are summed over all ranks, bucket by bucket, as each becomes ready;
// the step ends when all are there. The passes are computation of a given length, without memory
// traffic.
#include "common/repeated.hpp"

using namespace paribus;

namespace {

// The gradients of some neighbouring layers, and the share of the backward pass after which the
// last of them is there.
struct Bucket {
    long parameters;
    double ready;
};

// As DDP groups the parameters of torchvision's models, in reverse order of their layers: a tensor
// opens a new bucket where the one before has 25 MiB (bucket_cap_mb; the first 1 MiB), and is never
// divided. `ready` counts the multiplications of convolutions and linear layers for one image of
// 224 x 224: 4.09e9 and 15.47e9 in all, as He et al. (2016) and Simonyan and Zisserman (2015) have.
const std::vector<Bucket> resnet50 = {
    {2049000, 0.0005}, {7875584, 0.0947}, {6563840, 0.1733}, {6637568, 0.4905}, {2431040, 1}};
const std::vector<Bucket> vgg16 = {{4097000, 0.0003}, {16781312, 0.0013}, {102764544, 0.0080},
                                   {7079424, 0.0977}, {7079936, 0.6357},  {555328, 1}};

// Of the time of a step that is computed, the usual share: the backward pass multiplies twice as
// often as the forward pass, for the gradients of the weights and of what goes into a layer.
constexpr double forward = 1.0 / 3;

constexpr Option options[] = {
    {"model", "resnet50", "whose gradients: resnet50 or vgg16", 0, 0, false, {"resnet50", "vgg16"}},
    {"compute-ms", "100", "length of the computation of one step", 1, 100000},
    {"poll-us", "1000", "let MPI make progress this often while computing; 0: never", 0, 100000000},
    {}};

const std::vector<Bucket>& buckets_of(const Arguments& asked) {
    return asked.text.at("model") == "vgg16" ? vgg16 : resnet50;
}

std::size_t parameters_of(const std::vector<Bucket>& buckets) {
    std::size_t all = 0;
    for (const Bucket& one : buckets) all += static_cast<std::size_t>(one.parameters);
    return all;
}

Need need(const Arguments& asked, int) {
    const auto n = static_cast<double>(parameters_of(buckets_of(asked)));
    return {2.0 * sizeof(float) * n, "the gradients of " + asked.text.at("model") + " do"};
}

class Training {
public:
    explicit Training(Session& session)
        : session_(session),
          buckets_(buckets_of(session.arguments)),
          loops_per_us_(1e3 / session.clock.spin_ns),
          compute_us_(1e3 * static_cast<double>(session.arguments.numbers.at("compute-ms")[0])),
          poll_us_(static_cast<double>(session.arguments.numbers.at("poll-us")[0])),
          requests_(buckets_.size(), MPI_REQUEST_NULL) {}

    // One step; without `terms` its computation alone, of the same pieces.
    void step(const float* terms, float* sums) {
        compute(forward * compute_us_);
        double before = 0;
        std::size_t at = 0;
        for (std::size_t i = 0; i < buckets_.size(); ++i) {
            compute((1 - forward) * compute_us_ * (buckets_[i].ready - before));
            before = buckets_[i].ready;
            if (terms == nullptr) continue;
            MPI_Iallreduce(terms + at, sums + at, static_cast<int>(buckets_[i].parameters),
                           MPI_FLOAT, MPI_SUM, session_.comm, &requests_[i]);
            at += static_cast<std::size_t>(buckets_[i].parameters);
        }
        MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE);
        if (terms != nullptr) session_.delay();
    }

private:
    void compute(double us) {
        const double piece = poll_us_ > 0 ? poll_us_ : us;
        for (; us > 0; us -= piece) {
            spin(static_cast<std::uint64_t>(std::min(us, piece) * loops_per_us_));
            int done = 0;
            if (poll_us_ > 0)
                MPI_Testall(static_cast<int>(requests_.size()), requests_.data(), &done,
                            MPI_STATUSES_IGNORE);
        }
    }

    Session& session_;
    const std::vector<Bucket>& buckets_;
    const double loops_per_us_, compute_us_, poll_us_;
    std::vector<MPI_Request> requests_;
};

// Three times: step, compute, and what of a step is not compute. The computation is the same each
// time: the least that it took is what it takes undisturbed.
void keep(Session& session, Series step, Series compute) {
    Series exposed = session.series(step.case_text, 1);
    const double least = *std::min_element(compute.samples.begin(), compute.samples.end());
    for (const double ms : step.samples) exposed.samples.push_back(ms - least);
    const bool longer = *std::min_element(exposed.samples.begin(), exposed.samples.end()) > 0;
    session.give_up_if(longer
                           ? ""
                           : "a step took less than its computation alone: the processor's clock "
                             "changed; launch it again");
    exposed.metric = "exposed";
    compute.metric = "compute";
    session.keep(std::move(step));
    session.keep(std::move(exposed));
    session.keep(std::move(compute));
}

void measure(Session& session) {
    Training training(session);
    const Arguments& asked = session.arguments;
    const std::size_t n = parameters_of(buckets_of(asked));
    const std::string where =
        Object().add("model", asked.text.at("model")).add("ranks", session.ranks).text();
    Buffer out(sizeof(float) * n), in(sizeof(float) * n);
    session.give_up_if(out.data && in.data ? "" : "no memory left at " + where);
    auto* const terms = reinterpret_cast<float*>(out.data);
    auto* const sums = reinterpret_cast<float*>(in.data);
    unsigned salt = 0;
    const auto check = [&] {
        session.corrupt(in.data, sizeof(float) * n);
        session.verify(where, first_wrong_sum(sums, n, session.ranks, salt), n);
        fill_terms(terms, sums, n, session.rank, ++salt);
    };
    const auto whole = [&] { training.step(terms, sums); };
    const auto alone = [&] { training.step(nullptr, nullptr); };
    fill_terms(terms, sums, n, session.rank, salt);
    slowest_s(session, whole);  // opens connections and maps memory
    check();
    const double seconds = slowest_s(session, whole);
    set_delay(session, seconds);
    const double compute_s = 1e-3 * static_cast<double>(asked.numbers.at("compute-ms")[0]);
    Series step = session.series(where, 1), compute = session.series(where, 1);
    for (long n = repetitions(asked, seconds + compute_s); n > 0; --n) {
        compute.samples.push_back(1e3 * slowest_s(session, alone));
        step.samples.push_back(1e3 * slowest_s(session, whole));
    }
    check();
    keep(session, std::move(step), std::move(compute));
}

}  // namespace

int main(int argc, char** argv) {
    Spec spec;
    spec.name = "training_proxy";
    spec.summary = "A step of data-parallel training: gradients summed during computation.";
    spec.ranks = Ranks::several;
    spec.metric = "step";
    spec.unit = "ms";
    spec.sizes = nullptr;
    spec.likes = false;
    spec.intervals = true;
    spec.options = options;
    spec.need = need;
    spec.samples = 10;
    spec.max_case_s = 5;
    Session session(spec);
    session.start(argc, argv);
    measure(session);
    return session.finish();
}
