// Random access: updates of a table at random places per second, by the rules of RandomAccess of
// the HPC Challenge (Luszczek et al., "Introduction to the HPC Challenge Benchmark Suite", 2005).
// The ranks exchange updates as the corners of a hypercube (Plimpton, Brightwell, Vaughan,
// Underwood, Davis, "A simple synchronous distributed-memory algorithm for the HPCC RandomAccess
// benchmark", 2006).
#include <unistd.h>

#include <cstdint>
#include <cstdlib>

#include "common/repeated.hpp"

using namespace paribus;

namespace {

constexpr std::size_t look_ahead = 1024;  // updates of a rank that may wait, at most
constexpr std::size_t updates_of_word = 4;
constexpr std::size_t stretches = 8;
constexpr std::size_t least_words = look_ahead * stretches / updates_of_word;  // of a rank
constexpr int tag = 1;

constexpr Option options[] = {
    {"table", "268435456", "bytes of a rank's part, a power of two, or half: half of the memory"},
    {}};

// The numbers that place and change: x multiplied by itself modulo x^64 + x^2 + x + 1, over bits.
std::uint64_t next(std::uint64_t x) { return x << 1 ^ (x >> 63 != 0 ? 7 : 0); }

std::uint64_t after(std::uint64_t draws) {
    const auto times = [](std::uint64_t a, std::uint64_t b) {
        std::uint64_t product = 0;
        for (; b != 0; b >>= 1, a = next(a))
            if (b & 1) product ^= a;
        return product;
    };
    std::uint64_t result = 1, power = 2;
    for (; draws != 0; draws >>= 1, power = times(power, power))
        if (draws & 1) result = times(result, power);
    return result;
}

// Bytes of a rank's part as they were asked for; 0 for half of the memory, and for what cannot be.
std::size_t asked_bytes(const Arguments& asked) {
    const std::string& text = asked.text.at("table");
    const std::size_t bytes = std::strtoul(text.c_str(), nullptr, 10);
    const bool power = (bytes & (bytes - 1)) == 0 && bytes >= least_words * sizeof(std::uint64_t);
    return power && std::to_string(bytes) == text ? bytes : 0;
}

Need need_of_table(std::size_t bytes) {
    return {static_cast<double>(bytes),
            "a table of " + std::to_string(bytes) + " bytes on each rank does"};
}

Need need(const Arguments& asked, int) { return need_of_table(asked_bytes(asked)); }

// Bytes of a rank's part, or why not.
std::size_t table_bytes(Session& session) {
    std::size_t bytes = asked_bytes(session.arguments);
    if (session.arguments.text.at("table") == "half") {
        bytes = 1;
        MPI_Comm here;
        const long boot = std::strtol(boot_hash().c_str(), nullptr, 16);
        MPI_Comm_split(MPI_COMM_WORLD, static_cast<int>(boot), session.rank, &here);
        int ranks = 1;
        MPI_Comm_size(here, &ranks);
        MPI_Comm_free(&here);
        const double memory = static_cast<double>(sysconf(_SC_PHYS_PAGES)) *
                              static_cast<double>(sysconf(_SC_PAGE_SIZE));
        while (static_cast<double>(2 * bytes) * ranks <= memory / 2) bytes *= 2;
        MPI_Allreduce(MPI_IN_PLACE, &bytes, 1, MPI_UNSIGNED_LONG, MPI_MIN, MPI_COMM_WORLD);
        const Need found = need_of_table(bytes);
        session.refuse_larger(found.bytes, found.what);
    }
    if (bytes == 0)
        session.refuse("--table needs half, or a power of two of at least " +
                       std::to_string(least_words * sizeof(std::uint64_t)));
    return bytes;
}

class Table {
public:
    Table(const Session& session, std::size_t bytes)
        : rank_(static_cast<std::size_t>(session.rank)),
          ranks_(static_cast<std::size_t>(session.ranks)),
          words_(bytes / sizeof(std::uint64_t)),
          memory_(bytes),
          here_(look_ahead * ranks_),
          out_(look_ahead * ranks_) {
        if (memory_.data == nullptr) return;
        table_ = reinterpret_cast<std::uint64_t*>(memory_.data);
        for (std::size_t i = 0; i < words_; ++i) table_[i] = rank_ * words_ + i;
        begin();
    }

    InMpi in_mpi;

    bool whole() const { return memory_.data != nullptr; }
    unsigned char* data() { return memory_.data; }
    std::size_t words() const { return words_; }
    std::size_t updates() const { return updates_of_word * words_; }

    // Where this rank's part of the numbers begins.
    void begin() { number_ = after(rank_ * updates()); }

    // So many updates by each rank, wherever they fall.
    template <bool check>
    void update(std::size_t count) {
        for (; count > 0; count -= look_ahead) {
            for (std::size_t i = 0; i < look_ahead; ++i) here_[i] = number_ = next(number_);
            std::size_t n = look_ahead;
            for (std::size_t bit = 1; bit < ranks_; bit *= 2) n = exchange(n, bit);
            for (std::size_t i = 0; i < n; ++i) {
                table_[here_[i] & (words_ - 1)] ^= here_[i];
                if constexpr (check) misplaced_ += (here_[i] / words_ & (ranks_ - 1)) != rank_;
            }
            carried_out_ += n;
        }
    }
    // What of the updates, carried out twice, was not as it should be, "" if all were. Collective.
    std::string wrong_updates() const {
        std::size_t found[2] = {carried_out_, misplaced_};
        MPI_Allreduce(MPI_IN_PLACE, found, 2, MPI_UNSIGNED_LONG, MPI_SUM, MPI_COMM_WORLD);
        const std::size_t wanted = 2 * ranks_ * updates();
        if (rank_ > 0 || (found[0] == wanted && found[1] == 0)) return "";
        return std::to_string(found[0]) + " updates were carried out instead of " +
               std::to_string(wanted) + ", " + std::to_string(found[1]) + " by the wrong rank";
    }
    // A sum over the whole table that tells the places apart. Collective.
    std::uint64_t checksum() const {
        std::uint64_t sum = 0;
        for (std::size_t i = 0; i < words_; ++i) sum += (rank_ * words_ + i + 1) * table_[i];
        MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
        return sum;
    }
    // The first place that is not as it was in the beginning, or -1.
    long first_wrong() const {
        for (std::size_t i = 0; i < words_; ++i)
            if (table_[i] != rank_ * words_ + i) return static_cast<long>(i);
        return -1;
    }

private:
    // Sends those of the `n` updates here that belong to the other half of the ranks, which differs
    // in `bit`, and returns how many are here then.
    std::size_t exchange(std::size_t n, std::size_t bit) {
        std::size_t kept = 0, sent = 0;
        for (std::size_t i = 0; i < n; ++i) {
            const std::uint64_t update = here_[i];
            const bool leaves = ((update / words_ ^ rank_) & bit) != 0;
            out_[sent] = update;
            here_[kept] = update;
            sent += leaves;
            kept += !leaves;
        }
        const int partner = static_cast<int>(rank_ ^ bit);
        MPI_Status status;
        int received = 0;
        in_mpi([&] {
            MPI_Sendrecv(out_.data(), static_cast<int>(sent), MPI_UINT64_T, partner, tag,
                         here_.data() + kept, static_cast<int>(here_.size() - kept), MPI_UINT64_T,
                         partner, tag, MPI_COMM_WORLD, &status);
            MPI_Get_count(&status, MPI_UINT64_T, &received);
        });
        return kept + static_cast<std::size_t>(received);
    }

    const std::size_t rank_, ranks_, words_;
    Buffer memory_;
    std::uint64_t* table_ = nullptr;
    std::uint64_t number_ = 0;
    std::size_t carried_out_ = 0, misplaced_ = 0;
    std::vector<std::uint64_t> here_, out_;  // room for the updates of all ranks
};

void measure(Session& session, std::size_t bytes) {
    Table table(session, bytes);
    const std::string where = Object().add("ranks", session.ranks).text();
    session.give_up_if(table.whole() ? "" : "no memory left at " + where);
    Series series = session.series(where, 1);
    const std::size_t each = table.updates() / stretches;
    double all = 0;
    for (std::size_t i = 0; i < stretches; ++i) {
        const double seconds = slowest_s(session, [&] {
            table.update<false>(each);
            session.delay();
        });
        if (i == 0) set_delay(session, seconds);
        all += seconds;
        series.samples.push_back(1e-9 * static_cast<double>(each) * session.ranks / seconds);
    }
    const std::vector<double> in_mpi = shares(session, 1e-9 * table.in_mpi.ns(), all);
    session.corrupt(table.data(), bytes);
    const std::uint64_t sum = table.checksum();
    // The same updates again leave the table as it was before. HPCC permits errors in 1 % of the
    // places, of ranks that overwrite each other's updates; here nobody does.
    table.begin();
    table.update<true>(table.updates());
    session.give_up_if(table.wrong_updates());
    session.verify(where, table.first_wrong(), table.words());
    const auto total = [&](std::size_t of_rank) {
        return static_cast<long>(of_rank) * session.ranks;
    };
    const std::string work =
        Object().add("table_bytes", total(bytes)).add("updates", total(table.updates())).text();
    series.more =
        Object().add("in_mpi", in_mpi).raw("work", work).add("sum", std::to_string(sum)).text();
    session.keep(std::move(series));
}

}  // namespace

int main(int argc, char** argv) {
    Spec spec;
    spec.name = "random_access";
    spec.summary = "Updates of a table at random places per second, all ranks together.";
    spec.metric = "updates";
    spec.unit = "Gup/s";
    spec.sizes = nullptr;
    spec.likes = false;
    spec.intervals = true;
    spec.paced = false;
    spec.options = options;
    spec.need = need;
    Session session(spec);
    session.start(argc, argv);
    if ((session.ranks & (session.ranks - 1)) != 0)
        session.refuse("takes 1, 2, 4, 8 ... ranks, not " + std::to_string(session.ranks));
    const std::size_t bytes = table_bytes(session);
    measure(session, bytes);
    return session.finish();
}
