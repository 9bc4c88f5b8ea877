// Pairs: latency and bandwidth of every pair of ranks, many pairs at once, and of those that look
// slow again with fewer at once.
#include <cmath>
#include <iterator>

#include "common/sampling.hpp"
#include "common/tournament.hpp"

using namespace paribus;

namespace {

constexpr int answer_tag = 2, plan_tag = 3;
constexpr int window = 16;  // large messages under way at once
constexpr long least_samples = 3;

double median(std::vector<double> values) {
    if (values.empty()) return 0;
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}

// What is measured of every pair: round trips of the smallest message, or another size one way. A
// rank holds the samples of what it sends first; `most` of them for each other rank, 0: not taken.
struct Quantity {
    int count = 0;  // bytes of a message
    bool trips = false;
    std::size_t most = 0;
    std::vector<double> samples;
    std::vector<long> batches;
    // From rank to rank, on rank 0; `crowded` as it was in the first rounds.
    std::vector<double> medians, crowded;

    const char* metric() const { return trips ? "latency" : "bandwidth"; }
    const char* unit() const { return trips ? "us" : "MB/s"; }
    double figure(double ns) const { return trips ? 1e-3 / 2 * ns : 1e3 / ns * count; }
    double log_cost(std::size_t at) const {
        return trips ? std::log(medians[at]) : -std::log(medians[at]);
    }
    std::vector<double> samples_of(const std::vector<double>& all, std::size_t pair) const {
        const auto first = all.begin() + static_cast<std::ptrdiff_t>(pair * most);
        std::vector<double> found;
        std::copy_if(first, first + static_cast<std::ptrdiff_t>(most), std::back_inserter(found),
                     [](double value) { return value > 0; });
        return found;
    }
};

class AllPairs {
public:
    explicit AllPairs(Session& s) : session(s) {
        std::vector<long> bytes = s.arguments.bytes;
        std::sort(bytes.begin(), bytes.end());
        if (bytes.size() < 2)
            s.refuse("needs two sizes: one for the latency, a larger one for the bandwidth");
        for (const long size : bytes) {
            Quantity q;
            q.count = static_cast<int>(size);
            q.trips = size == bytes.front();
            q.most = static_cast<std::size_t>(s.arguments.samples);
            q.samples.resize(n * q.most);
            q.batches.resize(n);
            quantities.push_back(q);
        }
        s.give_up_if(out.data && in.data ? "" : "no memory left");
    }

    void measure() {
        const char* seed = std::getenv("PARIBUS_SEED");
        std::mt19937_64 dice(seed == nullptr ? 1 : std::strtoull(seed, nullptr, 10));
        play(rounds_of_rank_0(tournament(ranks, dice), rank));
        for (Quantity& q : quantities) q.crowded = q.medians;
        std::vector<Duel> again = slow_pairs();
        for (int most = ranks / 4; most > 0; most /= 2) {
            std::shuffle(again.begin(), again.end(), dice);
            const auto at_most = static_cast<std::size_t>(most);
            play(rounds_of_rank_0(packed(again, at_most, ranks), rank));
            const auto settled = [this](const Duel& duel) {
                return at_once[place(duel)] == 1 || excess(duel) <= 0;
            };
            again.erase(std::remove_if(again.begin(), again.end(), settled), again.end());
        }
    }

    // Leaves a series of each quantity and pair on rank 0.
    void keep() const {
        for (const Quantity& q : quantities) {
            const std::vector<double> samples = gathered(q.samples, MPI_DOUBLE);
            const std::vector<long> batches = gathered(q.batches, MPI_LONG);
            for (std::size_t at = 0; at < batches.size(); ++at) {
                if (batches[at] == 0) continue;
                const Duel duel(static_cast<int>(at / n), static_cast<int>(at % n));
                Series series = session.series(where(q, duel), batches[at]);
                series.metric = q.metric();
                series.unit = q.unit();
                series.samples = q.samples_of(samples, at);
                Object more;
                more.add("at_once", at_once[place(duel)]);
                if (measured[place(duel)] > 1) more.add("crowded", q.crowded[at]);
                series.more = more.text();
                session.keep(std::move(series));
            }
        }
    }

private:
    static std::size_t largest(const Session& s) {
        const auto& bytes = s.arguments.bytes;
        return static_cast<std::size_t>(*std::max_element(bytes.begin(), bytes.end()));
    }
    std::size_t place(const Duel& duel) const {
        const auto [low, high] = std::minmax(duel.first, duel.second);
        return static_cast<std::size_t>(low) * n + static_cast<std::size_t>(high);
    }
    std::string where(const Quantity& q, const Duel& duel) const {
        Object text;
        text.add("from", duel.first).add("to", duel.second).add("bytes", q.count);
        return text.text();
    }

    // The blocks of all ranks one after another on rank 0, nothing elsewhere. Collective.
    template <class T>
    std::vector<T> gathered(const std::vector<T>& mine, MPI_Datatype type) const {
        std::vector<T> all(rank == 0 ? n * mine.size() : 0);
        const int each = static_cast<int>(mine.size());
        MPI_Gather(mine.data(), each, type, all.data(), each, type, 0, MPI_COMM_WORLD);
        return all;
    }

    // Measures these rounds: of each pair the round trips, then one way, then the other, all pairs
    // of a round at the same time. Collective.
    void play(const std::vector<Round>& rounds) {
        for (const Round& round : rounds) {
            Duel mine(nobody, nobody);
            for (const Duel& duel : round) {
                at_once[place(duel)] = static_cast<int>(round.size());
                ++measured[place(duel)];
                if (duel.first == rank || duel.second == rank) mine = duel;
            }
            for (Quantity& q : quantities) {
                phase(q, mine);
                if (!q.trips) phase(q, {mine.second, mine.first});
            }
        }
        for (Quantity& q : quantities) {
            std::vector<double> own;
            for (std::size_t other = 0; other < n; ++other)
                own.push_back(median(q.samples_of(q.samples, other)));
            q.medians = gathered(own, MPI_DOUBLE);
        }
    }

    // Measures one quantity of this rank's pair, from its first rank to its second, and checks what
    // arrived; a rank without a pair waits. Collective.
    void phase(Quantity& q, const Duel& mine) {
        const bool leads = rank == mine.first, follows = rank == mine.second;
        const int other = leads ? mine.second : mine.first;
        const bool receives = follows || (leads && q.trips);
        const auto size = static_cast<std::size_t>(q.count);
        ++salt;
        if (leads || (follows && q.trips)) fill(out.data, size, rank, other, salt);
        if (receives) poison(in.data, size, other, rank, salt);
        start_together(rank, ranks);
        std::string wrong;
        if (leads) wrong = lead(q, other);
        else if (follows) follow(q, other);
        meet_quietly();
        session.give_up_if(wrong);
        if (receives) session.corrupt(in.data, size);
        const long position = receives ? first_wrong(in.data, size, other, rank, salt) : -1;
        session.verify(where(q, mine), position, receives ? size : 0);
    }

    // Takes the samples of this pair, and returns what is wrong with them.
    std::string lead(Quantity& q, int other) {
        const Arguments& asked = session.arguments;
        const double cost = session.clock.cost_ns, window_ns = 1e9 * asked.max_case_s;
        const double operation_ns = tried(q, other, true);
        const double sample_ns = std::max(1.2 * session.clock.least_sample_ns() + cost,
                                          window_ns / static_cast<double>(q.most));
        const long batch = asked.iterations > 0
                               ? asked.iterations
                               : std::lround(std::ceil(std::min(1e7, sample_ns / operation_ns)));
        const double fit = window_ns / (operation_ns * static_cast<double>(batch));
        const long most = asked.samples;
        const long count =
            std::clamp(static_cast<long>(std::min(1e9, fit)), std::min(least_samples, most), most);
        const long warmup = asked.warmup >= 0 ? asked.warmup : q.trips ? 1 : 0;
        const long plan[3] = {batch, count, warmup};
        MPI_Send(plan, 3, MPI_LONG, other, plan_tag, MPI_COMM_WORLD);
        for (long i = 0; i < warmup; ++i) operate(q, other, true, batch);
        Stamps stamps(count + 1);
        stamps.record();
        for (long i = 0; i < count; ++i) {
            operate(q, other, true, batch);
            stamps.record();
        }
        const auto first = static_cast<std::size_t>(other) * q.most;
        std::fill_n(q.samples.begin() + static_cast<std::ptrdiff_t>(first), q.most, 0.0);
        q.batches[static_cast<std::size_t>(other)] = batch;
        for (long i = 0; i < count; ++i) {
            const double ns = static_cast<double>(stamps[i + 1] - stamps[i]) - cost;
            if (ns <= 0)
                return "a sample at " + where(q, {rank, other}) +
                       " is shorter than reading the clock; raise --iterations";
            q.samples[first + static_cast<std::size_t>(i)] =
                q.figure(ns / static_cast<double>(batch));
        }
        return "";
    }

    void follow(const Quantity& q, int other) {
        tried(q, other, false);
        long plan[3];
        MPI_Recv(plan, 3, MPI_LONG, other, plan_tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (long i = 0; i < plan[1] + plan[2]; ++i) operate(q, other, false, plan[0]);
    }

    // What an operation takes, in ns. The first one is not timed: it may open a connection. Sets
    // this rank's delay where one is asked for.
    double tried(const Quantity& q, int other, bool leads) {
        const long few = q.trips ? 8 : 1;
        const auto timed = [&] {
            const std::int64_t start = now_ns();
            operate(q, other, leads, few);
            return std::max(1.0, static_cast<double>(now_ns() - start)) / static_cast<double>(few);
        };
        session.delay_loops = 0;
        operate(q, other, leads, 1);
        const double message_ns = timed() / (q.trips ? 2 : 1);
        const double extra_ns =
            1000 * session.arguments.delay_us + session.arguments.delay_share * message_ns;
        session.delay_loops = static_cast<std::uint64_t>(extra_ns / session.clock.spin_ns);
        return timed();
    }

    // This rank's part of `operations` round trips, or messages and an answer to the last.
    void operate(const Quantity& q, int other, bool leads, long operations) {
        if (q.trips) {
            for (long i = 0; i < operations; ++i) {
                if (!leads) receive(q, other);
                session.delay();
                MPI_Send(out.data, q.count, MPI_BYTE, other, 1, MPI_COMM_WORLD);
                if (leads) receive(q, other);
            }
            return;
        }
        MPI_Request requests[window];
        for (long done = 0; done < operations; done += window) {
            const int now = static_cast<int>(std::min<long>(window, operations - done));
            for (int i = 0; i < now; ++i) {
                session.delay();
                if (leads)
                    MPI_Isend(out.data, q.count, MPI_BYTE, other, 1, MPI_COMM_WORLD, requests + i);
                else MPI_Irecv(in.data, q.count, MPI_BYTE, other, 1, MPI_COMM_WORLD, requests + i);
            }
            MPI_Waitall(now, requests, MPI_STATUSES_IGNORE);
        }
        unsigned char answer[4] = {};
        if (leads)
            MPI_Recv(answer, 4, MPI_BYTE, other, answer_tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        else MPI_Send(answer, 4, MPI_BYTE, other, answer_tag, MPI_COMM_WORLD);
    }
    void receive(const Quantity& q, int other) {
        MPI_Recv(in.data, q.count, MPI_BYTE, other, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }

    // The pairs that look slow, the worst first, at most as many as there are ranks; on rank 0.
    std::vector<Duel> slow_pairs() {
        if (rank != 0) return {};
        limits.clear();
        for (const Quantity& q : quantities) limits.push_back(limit(q));
        std::vector<Duel> found;
        for (int low = 0; low < ranks; ++low)
            for (int high = low + 1; high < ranks; ++high)
                if (excess({low, high}) > 0) found.emplace_back(low, high);
        std::sort(found.begin(), found.end(),
                  [this](const Duel& a, const Duel& b) { return excess(a) > excess(b); });
        found.resize(std::min(found.size(), n));
        return found;
    }

    // Where "slow" begins, as a log cost: three standard deviations (as the median absolute
    // deviation estimates them) beyond the median of all pairs, but no less than 5 % and no more
    // than twice: where all pairs scatter because they hinder each other, none would look slow.
    double limit(const Quantity& q) const {
        std::vector<double> costs;
        for (std::size_t at = 0; at < n * n; ++at)
            if (q.medians[at] > 0) costs.push_back(q.log_cost(at));
        const double middle = median(costs);
        for (double& cost : costs) cost = std::abs(cost - middle);
        return middle + std::clamp(3 * 1.4826 * median(costs), std::log(1.05), std::log(2.0));
    }

    // By how much the worst quantity of a pair is beyond its limit, both ways; on rank 0.
    double excess(const Duel& duel) const {
        double most = 0;
        const auto low = static_cast<std::size_t>(duel.first);
        const auto high = static_cast<std::size_t>(duel.second);
        for (std::size_t i = 0; i < limits.size(); ++i)
            for (const std::size_t at : {low * n + high, high * n + low})
                if (quantities[i].medians[at] > 0)
                    most = std::max(most, quantities[i].log_cost(at) - limits[i]);
        return most;
    }

    Session& session;
    const int rank = session.rank, ranks = session.ranks;
    const std::size_t n = static_cast<std::size_t>(ranks);
    Buffer out{largest(session)}, in{largest(session)};
    std::vector<Quantity> quantities;
    std::vector<double> limits;                          // of each quantity
    std::vector<int> at_once = std::vector<int>(n * n);  // pairs, when this one was measured last
    std::vector<int> measured = std::vector<int>(n * n);
    unsigned salt = 0;
};

}  // namespace

int main(int argc, char** argv) {
    Spec spec;
    spec.name = "pairs";
    spec.summary = "Latency and bandwidth of every pair of ranks, n / 2 pairs at once.";
    spec.ranks = Ranks::several;
    spec.sizes = "8,1048576";
    spec.samples = 10;
    spec.max_case_s = 0.004;
    spec.likes = false;
    Session session(spec);
    session.start(argc, argv);
    AllPairs pairs(session);
    pairs.measure();
    pairs.keep();
    return session.finish();
}
