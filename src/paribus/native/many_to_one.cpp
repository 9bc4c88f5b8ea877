// Incast: many ranks send to one at the same time. What arrives of each flow, how evenly, and what
// a message of others waits behind them.
#include <numeric>

#include "common/cases.hpp"
#include "common/flows.hpp"

using namespace paribus;

namespace {

constexpr double warmup_share = 0.2;  // of the time of a case; the idle line has as much
constexpr double patience_ns = 1e10;  // beyond which a flow that carries nothing is an error
constexpr long least_samples = 3;
constexpr std::size_t most_trips = 1 << 20;

// Who does what. A rank beside the receiver is the victim, and exchanges messages with its partner
// on another host: these pass the congested link, but not a sender's own, if there is a host more.
struct Roles {
    std::vector<int> senders;
    int victim = -1, partner = -1;

    // From the host of each rank; `wanted` senders, 0: all that are left. The first of
    // each host come first, that of the partner's host last of these; those beside the receiver
    // come at the very end.
    Roles(const std::vector<std::string>& hosts, long wanted) {
        const int ranks = static_cast<int>(hosts.size());
        const auto host = [&](int r) { return hosts[static_cast<std::size_t>(r)]; };
        for (int r = ranks - 1; r > 0; --r)
            if (host(r) == host(0)) victim = r;
        if (victim < 0) victim = ranks - 2;
        for (int r = 1; r < ranks; ++r)
            if (r != victim && (partner < 0 || host(r) != host(victim))) partner = r;
        if (host(partner) == host(victim)) partner = victim == ranks - 1 ? ranks - 2 : ranks - 1;
        std::vector<std::pair<long, int>> order;
        for (int r = 1; r < ranks; ++r) {
            if (r == victim || r == partner) continue;
            long before = host(r) == host(0) ? 2 * ranks : host(r) == host(partner) ? 1 : 0;
            for (const auto& one : order) before += host(one.second) == host(r) ? 2 : 0;
            order.emplace_back(before, r);
        }
        std::sort(order.begin(), order.end());
        if (wanted > 0) order.resize(std::min(order.size(), static_cast<std::size_t>(wanted)));
        for (const auto& one : order) senders.push_back(one.second);
        std::sort(senders.begin(), senders.end());
    }
};

// (sum x)^2 / (n * sum x^2): 1 if all are equal, 1/n if one has everything. Jain, Chiu and Hawe,
// "A quantitative measure of fairness and discrimination for resource allocation in shared
// computer systems", DEC-TR-301, 1984.
double jain(const std::vector<double>& x) {
    const double sum = std::accumulate(x.begin(), x.end(), 0.0);
    const double squares = std::inner_product(x.begin(), x.end(), x.begin(), 0.0);
    return sum * sum / (static_cast<double>(x.size()) * squares);
}

template <class Flows>
class Incast {
public:
    Incast(Session& s, const Roles& r, long bytes, long connections, unsigned& data)
        : session(s),
          roles(r),
          size(static_cast<std::size_t>(bytes)),
          salt(data),
          flows(Streams{s.rank, r.senders, static_cast<int>(connections), size, out.data, in.data,
                        block_bytes}),
          line(s.rank, r.partner, r.victim),
          where(Object().add("bytes", bytes).add("connections", connections).text()) {
        s.give_up_if(out.data && in.data ? "" : "no memory left at " + where);
    }

    void measure(bool sockets) {
        const auto address = [&](int r) {
            const auto& hosts = session.hosts();
            const std::string& host = hosts[static_cast<std::size_t>(r)];
            const std::string& asked = session.arguments.text.at("receiver");
            return asked.empty() || host != hosts[receiver_rank] ? host : asked;
        };
        session.give_up_if(flows.open(address(receiver_rank)));
        if (sockets)
            session.give_up_if(
                line.open(session.rank, roles.partner, roles.victim, address(roles.victim)));
        idle_ns = phase(false);
        loaded_ns = phase(true);
        new_data();
    }

    // Leaves a series of each metric on rank 0.
    void keep() const {
        if (!receives()) return;
        add("goodput", "Mbit/s", where, goodput, 1);
        add("fairness", "share", where, fairness, 1);
        for (std::size_t s = 0; s < roles.senders.size(); ++s)
            add("flow", "Mbit/s", where_of(s), of_flow[s], 1,
                Object().add("rank", roles.senders[s]).text());
        add_trips("idle_latency", idle_ns);
        add_trips("loaded_latency", loaded_ns);
    }

private:
    bool receives() const { return session.rank == receiver_rank; }
    bool sends() const {
        return std::count(roles.senders.begin(), roles.senders.end(), session.rank) > 0;
    }
    static double since(std::int64_t start) { return static_cast<double>(now_ns() - start); }
    double warmup_ns() const { return 1e9 * warmup_share * session.arguments.max_case_s; }
    std::string where_of(std::size_t s) const {
        const std::string number = ", \"sender\": " + std::to_string(s + 1) + "}";
        return where.substr(0, where.size() - 1) + number;
    }

    void add(const char* metric, const char* unit, const std::string& text,
             const std::vector<double>& samples, long batch, const std::string& more = "") const {
        Series series = session.series(text, batch);
        series.metric = metric;
        series.unit = unit;
        series.samples = samples;
        series.more = more;
        session.keep(std::move(series));
    }
    // So many round trips in turn make a sample; its value is half their mean.
    void add_trips(const char* metric, const std::vector<double>& trips_ns) const {
        const auto wanted = static_cast<std::size_t>(session.arguments.samples);
        const std::size_t batch = std::max<std::size_t>(1, trips_ns.size() / wanted);
        std::vector<double> samples;
        for (auto first = trips_ns.begin(); samples.size() < std::min(wanted, trips_ns.size());) {
            const auto last = first + static_cast<std::ptrdiff_t>(batch);
            const double sum = std::accumulate(first, last, 0.0);
            samples.push_back(1e-3 / 2 * sum / static_cast<double>(batch));
            first = last;
        }
        add(metric, "us", where, samples, static_cast<long>(batch));
    }

    // The victim's round trips, with the senders at work or without, and the check of all that was
    // received. Returns the times of the round trips on rank 0. Collective.
    std::vector<double> phase(bool loaded) {
        const bool leads = session.rank == roles.partner, follows = session.rank == roles.victim;
        const int other = leads ? roles.victim : roles.partner;
        ++salt;
        fill(ping, line_bytes, session.rank, other, salt);
        poison(pong, line_bytes, other, session.rank, salt);
        prepare();
        start_together(session.rank, session.ranks);
        std::vector<double> trips_ns;
        std::string wrong;
        if (leads) trips_ns = lead(loaded);
        else if (follows) follow();
        else if (loaded && receives()) wrong = receive();
        else if (loaded && sends()) send();
        meet_quietly();
        if (leads && trips_ns.empty())
            wrong = "the victim's message took longer than --max-case-s at " + where;
        session.give_up_if(wrong);
        const bool on_line = leads || follows;
        session.verify(where,
                       on_line ? first_wrong(pong, line_bytes, other, session.rank, salt) : -1,
                       on_line ? line_bytes : 0);
        if (loaded) check();
        return on_rank_0(trips_ns);
    }
    std::vector<double> on_rank_0(std::vector<double> mine) const {
        long n = static_cast<long>(mine.size());
        MPI_Bcast(&n, 1, MPI_LONG, roles.partner, MPI_COMM_WORLD);
        mine.resize(static_cast<std::size_t>(n));
        MPI_Bcast(mine.data(), static_cast<int>(n), MPI_DOUBLE, roles.partner, MPI_COMM_WORLD);
        return mine;
    }

    // The partner: round trips until the receiver has its samples, or for the time of a warm-up.
    std::vector<double> lead(bool loaded) {
        const double drop_ns = loaded ? warmup_ns() : warmup_ns() / 10;
        MPI_Request stop = MPI_REQUEST_NULL;
        if (loaded) MPI_Irecv(nullptr, 0, MPI_BYTE, receiver_rank, stop_tag, MPI_COMM_WORLD, &stop);
        std::vector<double> trips_ns;
        trips_ns.reserve(most_trips);
        const std::int64_t begin = now_ns();
        for (int over = 0; !over;) {
            const std::int64_t start = now_ns();
            line.send(ping);
            line.receive(pong);
            const double ns = since(start) - session.clock.cost_ns;
            if (since(begin) > drop_ns && trips_ns.size() < most_trips && ns > 0)
                trips_ns.push_back(ns);
            if (loaded) MPI_Test(&stop, &over, MPI_STATUS_IGNORE);
            else over = since(begin) > warmup_ns();
        }
        line.end();
        return trips_ns;
    }
    void follow() {
        while (line.receive(pong)) line.send(ping);
    }

    void send() {
        const Arguments& asked = session.arguments;
        double messages = 0;
        const auto set = [&](double ns) {
            session.delay_loops = static_cast<std::uint64_t>(ns / session.clock.spin_ns);
        };
        set(1000 * asked.delay_us);
        const auto before = [&] {
            session.delay();
            ++messages;
        };
        const std::int64_t begin = now_ns();
        while (flows.push(before) && since(begin) < warmup_ns() / 2) {
        }
        // A share is one of the time that a message took until now.
        set(1000 * asked.delay_us + asked.delay_share * since(begin) / messages);
        while (flows.push(before)) {
        }
        flows.end();
    }

    // The receiver: a sample is a stretch of time, in which every flow carries as much as tells its
    // rate. They follow each other without a gap. Returns what went wrong.
    std::string receive() {
        const std::size_t n = roles.senders.size();
        const double least = static_cast<double>(flows.least());
        std::vector<double> bytes(n);  // of each flow in this stretch
        of_flow.resize(n);
        const auto pull = [&] {
            flows.pull(
                [&](std::size_t s, std::size_t more) { bytes[s] += static_cast<double>(more); });
        };
        const auto slowest = [&] { return std::min_element(bytes.begin(), bytes.end()); };
        std::string wrong;
        const Arguments& asked = session.arguments;
        const double case_ns = 1e9 * asked.max_case_s;
        const std::int64_t start = now_ns();
        std::int64_t begin = start;
        for (long i = -1; i < asked.samples && wrong.empty(); ++i) {
            if (i >= least_samples && since(start) > 3 * case_ns) break;
            const double wanted_ns =
                i < 0 ? warmup_ns() : case_ns / static_cast<double>(asked.samples);
            std::fill(bytes.begin(), bytes.end(), 0.0);
            const auto poor = [&] { return *slowest() < least; };
            do pull();
            while (since(begin) < wanted_ns || (poor() && since(begin) < wanted_ns + patience_ns));
            const std::int64_t end = now_ns();
            if (poor())
                wrong = "a flow carried next to nothing for 10 s at " +
                        where_of(static_cast<std::size_t>(slowest() - bytes.begin()));
            else if (i >= 0) add_sample(bytes, static_cast<double>(end - begin));
            begin = end;
        }
        MPI_Send(nullptr, 0, MPI_BYTE, roles.partner, stop_tag, MPI_COMM_WORLD);
        flows.stop();
        do pull();
        while (!flows.ended());
        return wrong;
    }
    void add_sample(std::vector<double> rates, double ns) {
        for (std::size_t s = 0; s < rates.size(); ++s) {
            rates[s] *= 8e3 / ns;
            of_flow[s].push_back(rates[s]);
        }
        goodput.push_back(std::accumulate(rates.begin(), rates.end(), 0.0));
        fairness.push_back(jain(rates));
    }

    // Blocks hold one message after another, all alike.
    void prepare() {
        fill(out.data, size, session.rank, receiver_rank, salt);
        if (!receives()) return;
        for (std::size_t s = 0; s < roles.senders.size(); ++s)
            for (std::size_t at = 0; at < block_bytes; at += size)
                poison(block(s) + at, size, roles.senders[s], receiver_rank, salt);
    }
    void check() {
        long wrong = -1;
        std::size_t n = 0;
        if (receives() && session.arguments.corrupt) in.data[size / 2] ^= 0x10;
        for (std::size_t s = 0; s < roles.senders.size() && receives(); ++s) {
            const std::size_t filled = flows.filled(s);
            for (std::size_t at = 0; at < filled && wrong < 0; at += size) {
                const long found = first_wrong(block(s) + at, std::min(size, filled - at),
                                               roles.senders[s], receiver_rank, salt);
                if (found >= 0) wrong = static_cast<long>(n + at) + found;
            }
            n += filled;
        }
        session.verify(where, wrong, n);
    }
    unsigned char* block(std::size_t s) const { return in.data + s * block_bytes; }

    // One more message on each connection, other data on each.
    void new_data() {
        const auto connections = static_cast<std::size_t>(flows.streams.connections);
        long wrong = -1;
        std::size_t n = 0;
        for (std::size_t lane = 0; lane < flows.streams.lanes(); ++lane) {
            const unsigned data = ++salt;
            if (!receives()) {
                fill(out.data, size, session.rank, receiver_rank, data);
                flows.send_one(lane);
                continue;
            }
            const std::size_t s = lane / connections;
            const unsigned sent = data - static_cast<unsigned>(s * connections);
            poison(block(s), size, roles.senders[s], receiver_rank, sent);
            flows.receive_one(lane);
            const long found = first_wrong(block(s), size, roles.senders[s], receiver_rank, sent);
            if (found >= 0 && wrong < 0) wrong = static_cast<long>(n) + found;
            n += size;
        }
        meet_quietly();
        session.verify(where, wrong, n);
        MPI_Bcast(&salt, 1, MPI_UNSIGNED, receiver_rank, MPI_COMM_WORLD);
    }

    Session& session;
    const Roles& roles;
    const std::size_t size;
    unsigned& salt;
    const std::size_t block_bytes = size * Flows::messages(size);
    Buffer out{size}, in{receives() ? block_bytes * roles.senders.size() : 0};
    unsigned char ping[line_bytes] = {}, pong[line_bytes] = {};
    Flows flows;
    Line line;
    const std::string where;
    // On the receiver; of the round trips everywhere.
    std::vector<double> goodput, fairness, idle_ns, loaded_ns;
    std::vector<std::vector<double>> of_flow;
};

template <class Flows>
void measure(Session& session, bool sockets) {
    const Roles roles(session.hosts(), session.arguments.numbers.at("senders").front());
    unsigned salt = 0;
    for (const long size : session.arguments.bytes)
        for (const long connections : session.arguments.numbers.at("connections")) {
            Incast<Flows> incast(session, roles, size, connections, salt);
            incast.measure(sockets);
            incast.keep();
        }
}

constexpr Option options[] = {
    {"connections", "1,16", "of each sender: numbers from 1 to 64", 1, 64, true},
    {"senders", "0", "how many ranks send; 0: all that are left", 0, 1 << 20},
    {"over", "mpi", "mpi or sockets: TCP connections of our own", 0, 0, false, {"mpi", "sockets"}},
    {"receiver", "", "address of rank 0's host for the sockets, instead of its name"},
    {},
};

}  // namespace

int main(int argc, char** argv) {
    Spec spec;
    spec.name = "many_to_one";
    spec.summary = "Incast: many ranks send to one at once, beside two that exchange messages.";
    spec.ranks = Ranks::several;
    spec.sizes = "64,4096,65536";
    spec.in_for_each_rank = true;
    spec.samples = 10;
    spec.max_case_s = 0.5;
    spec.likes = false;
    spec.intervals = true;
    spec.options = options;
    Session session(spec);
    session.start(argc, argv);
    if (session.ranks < 4)
        session.refuse("needs 4 ranks or more: a receiver, a sender, and two for the latency");
    if (session.arguments.numbers.at("senders").front() > session.ranks - 3)
        session.refuse("--senders is more than the ranks without receiver, victim and partner");
    const bool sockets = session.arguments.text.at("over") == "sockets";
    if (!sockets && !session.arguments.text.at("receiver").empty())
        session.refuse("--receiver is for --over sockets; MPI chooses its addresses itself");
    if (sockets) measure<SocketFlows>(session, true);
    else measure<MpiFlows>(session, false);
    return session.finish();
}
