// Replay: the calls of another program in their order, with computation of a given length between.
//
// Such a skeleton has the messages of the program and nothing of its data (J. Subhlok and others,
// "Characterizing and Predicting Program Behavior with Performance Skeletons", 2004 on). What it
// replays is a text, which profile/calls.py writes and describes.
#include <fstream>
#include <map>
#include <sstream>

#include "common/repeated.hpp"

using namespace paribus;

namespace {

constexpr Option options[] = {
    {"application", "", "the program whose calls these are"}, {"file", "", "that has them"}, {}};

enum class Code {
    send,
    recv,
    sendrecv,
    wait,  // of messages
    barrier,
    bcast,
    reduce,
    allreduce,
    scan,
    exscan,
    gather,
    scatter,
    allgather,
    alltoall,
    reduce_scatter,
    gatherv,
    scatterv,
    allgatherv,
    alltoallv  // of sizes that differ
};
const std::map<std::string, Code> codes = {{"send", Code::send},
                                           {"recv", Code::recv},
                                           {"sendrecv", Code::sendrecv},
                                           {"wait", Code::wait},
                                           {"barrier", Code::barrier},
                                           {"bcast", Code::bcast},
                                           {"reduce", Code::reduce},
                                           {"allreduce", Code::allreduce},
                                           {"scan", Code::scan},
                                           {"exscan", Code::exscan},
                                           {"gather", Code::gather},
                                           {"scatter", Code::scatter},
                                           {"allgather", Code::allgather},
                                           {"alltoall", Code::alltoall},
                                           {"reduce_scatter", Code::reduce_scatter},
                                           {"gatherv", Code::gatherv},
                                           {"scatterv", Code::scatterv},
                                           {"allgatherv", Code::allgatherv},
                                           {"alltoallv", Code::alltoallv}};

constexpr long most_bytes = (1L << 31) - 1;  // that MPI counts in one call

// A message to or from a rank, or what a collective sends: each call has memory of its own, as the
// arrays of a program have.
struct Part {
    int peer = 0, tag = 0;
    long bytes = 0;
    std::size_t at = 0;
};

struct Call {
    Code code;
    Part out, in;  // `in` of sendrecv and of collectives
    int group = 0, root = 0, slot = -1;
    std::vector<int> slots, sizes, places;
};

struct Event {
    std::uint32_t call;
    std::uint32_t loops;
};

// What this rank is to do.
struct Skeleton {
    std::vector<std::vector<int>> groups;
    std::vector<Call> calls;
    std::vector<Event> events;
    std::size_t memory = 0;
    int slots = 0;
};

class Reader {
public:
    Reader(const std::string& text, int rank, double spin_ns) : in_(text), spin_ns_(spin_ns) {
        std::string word;
        long version = 0, ranks = 0, groups = 0;
        in_ >> word >> version >> ranks >> groups;
        check(word == "paribus-calls" && version == 1 && ranks > rank);
        for (; groups > 0 && in_; groups--) {
            std::vector<int> members(static_cast<std::size_t>(number(1, ranks)));
            for (int& one : members) one = static_cast<int>(number(0, ranks - 1));
            found.groups.push_back(members);
        }
        for (int one = 0; one <= rank && good(); one++) {
            found.calls.clear();
            found.events.clear();
            found.memory = 0;
            found.slots = 0;
            const long calls = number(0, 1 << 24), events = number(0, 1 << 28);
            for (long i = 0; i < calls && good(); i++) read_call(ranks);
            for (long i = 0; i < events && good(); i++) {
                const long call = number(0, calls - 1), ns = number(0, 1L << 60);
                const double loops = static_cast<double>(ns) / spin_ns_;
                found.events.push_back({static_cast<std::uint32_t>(call),
                                        static_cast<std::uint32_t>(std::min(loops, 4e9))});
            }
        }
    }
    bool good() const { return !bad_; }
    Skeleton found;

private:
    void check(bool so) { bad_ |= !so; }
    long number(long least, long most) {
        long n = least;
        in_ >> n;
        check(!in_.fail() && n >= least && n <= most);
        return good() ? n : least;
    }
    Part part(long ranks) {
        Part one;
        one.peer = static_cast<int>(number(0, ranks - 1));
        one.tag = static_cast<int>(number(0, 32767));
        one.bytes = number(0, most_bytes);
        place(one, one.bytes);
        return one;
    }
    void place(Part& one, long bytes) {
        one.at = found.memory;
        found.memory += (static_cast<std::size_t>(bytes) + 127) & ~std::size_t(63);
    }
    int slot() {
        const int one = static_cast<int>(number(-1, 1 << 20));
        found.slots = std::max(found.slots, one + 1);
        return one;
    }
    void read_call(long ranks) {
        std::string word;
        in_ >> word;
        const auto known = codes.find(word);
        check(known != codes.end());
        if (!good()) return;
        Call call;
        call.code = known->second;
        if (call.code == Code::send) call.out = part(ranks), call.slot = slot();
        else if (call.code == Code::recv) call.in = part(ranks), call.slot = slot();
        else if (call.code == Code::sendrecv) call.out = part(ranks), call.in = part(ranks);
        else if (call.code == Code::wait)
            for (long n = number(0, 1 << 20); n > 0 && good(); n--) call.slots.push_back(slot());
        else {
            read_collective(call, ranks);
        }
        found.calls.push_back(call);
    }
    // Sizes that differ: of each rank, or what is sent to each and then what is received of each.
    void read_collective(Call& call, long ranks) {
        call.group = static_cast<int>(number(0, static_cast<long>(found.groups.size()) - 1));
        if (!good()) return;
        const auto& members = found.groups[static_cast<std::size_t>(call.group)];
        const std::size_t n = members.size();
        const long root = number(0, ranks - 1);
        for (std::size_t i = 0; i < n; i++)
            if (members[i] == root) call.root = static_cast<int>(i);
        call.slot = slot();
        const bool differ = call.code >= Code::gatherv;
        const bool to_all = call.code == Code::alltoallv;
        long out = 0, in = 0;
        for (std::size_t i = 0; i < (to_all ? 2 * n : differ ? n : 1); i++) {
            const long bytes = number(0, most_bytes);
            long& sum = to_all && i < n ? out : in;
            if (differ) {
                call.sizes.push_back(static_cast<int>(bytes));
                call.places.push_back(static_cast<int>(sum));
            }
            sum += bytes;
            check(sum < 1L << 31);
        }
        if (!differ) call.out.bytes = in, in = (in + 16) * static_cast<long>(n);
        place(call.out, std::max(out, in));
        place(call.in, std::max(out, in));
    }
    std::istringstream in_;
    const double spin_ns_;
    bool bad_ = false;
};

class Replay {
public:
    Replay(Session& session, Skeleton skeleton)
        : session_(session),
          skeleton_(std::move(skeleton)),
          memory_(skeleton_.memory + 64),
          requests_(static_cast<std::size_t>(skeleton_.slots), MPI_REQUEST_NULL) {
        MPI_Group world;
        MPI_Comm_group(MPI_COMM_WORLD, &world);
        for (const auto& members : skeleton_.groups) {
            MPI_Group of;
            MPI_Comm comm = MPI_COMM_NULL;
            MPI_Group_incl(world, static_cast<int>(members.size()), members.data(), &of);
            MPI_Comm_create(MPI_COMM_WORLD, of, &comm);
            MPI_Group_free(&of);
            comms_.push_back(comm);
        }
        MPI_Group_free(&world);
    }
    bool whole() const { return memory_.data != nullptr; }
    void operator()() {
        for (const Event& event : skeleton_.events) {
            spin(event.loops);
            make(skeleton_.calls[event.call]);
        }
        session_.delay();
    }

private:
    unsigned char* at(const Part& part) const { return memory_.data + part.at; }
    MPI_Request* request(int slot) { return &requests_[static_cast<std::size_t>(slot)]; }
    static int bytes(const Part& part) { return static_cast<int>(part.bytes); }

    void make(const Call& call) {
        const MPI_Comm world = session_.comm;
        const Part &out = call.out, &in = call.in;
        switch (call.code) {
            case Code::send:
                if (call.slot < 0)
                    MPI_Send(at(out), bytes(out), MPI_BYTE, out.peer, out.tag, world);
                else
                    MPI_Isend(at(out), bytes(out), MPI_BYTE, out.peer, out.tag, world,
                              request(call.slot));
                return;
            case Code::recv:
                if (call.slot < 0)
                    MPI_Recv(at(in), bytes(in), MPI_BYTE, in.peer, in.tag, world,
                             MPI_STATUS_IGNORE);
                else
                    MPI_Irecv(at(in), bytes(in), MPI_BYTE, in.peer, in.tag, world,
                              request(call.slot));
                return;
            case Code::sendrecv:
                MPI_Sendrecv(at(out), bytes(out), MPI_BYTE, out.peer, out.tag, at(in), bytes(in),
                             MPI_BYTE, in.peer, in.tag, world, MPI_STATUS_IGNORE);
                return;
            case Code::wait:
                if (call.slots.size() == 1) {
                    MPI_Wait(request(call.slots[0]), MPI_STATUS_IGNORE);
                    return;
                }
                waited_.clear();
                for (const int slot : call.slots) waited_.push_back(*request(slot));
                MPI_Waitall(static_cast<int>(waited_.size()), waited_.data(), MPI_STATUSES_IGNORE);
                for (const int slot : call.slots) *request(slot) = MPI_REQUEST_NULL;
                return;
            default:
                call.sizes.empty() ? together(call) : uneven(call);
        }
    }
    void uneven(const Call& call) {
        MPI_Request ignored = MPI_REQUEST_NULL;
        const bool starts = call.slot >= 0;
        MPI_Request* r = starts ? request(call.slot) : &ignored;
        const MPI_Comm comm = comms_[static_cast<std::size_t>(call.group)];
        unsigned char *out = at(call.out), *in = at(call.in);
        const int *sizes = call.sizes.data(), *places = call.places.data(), root = call.root;
        int me = 0;
        MPI_Comm_rank(comm, &me);
        const MPI_Datatype byte = MPI_BYTE;
        switch (call.code) {
            case Code::gatherv:
                MPI_Gatherv(out, sizes[me], byte, in, sizes, places, byte, root, comm);
                return;
            case Code::scatterv:
                MPI_Scatterv(out, sizes, places, byte, in, sizes[me], byte, root, comm);
                return;
            case Code::allgatherv:
                starts ? MPI_Iallgatherv(out, sizes[me], byte, in, sizes, places, byte, comm, r)
                       : MPI_Allgatherv(out, sizes[me], byte, in, sizes, places, byte, comm);
                return;
            default: {
                const std::size_t n = call.sizes.size() / 2;
                const int *got = sizes + n, *to = places + n;
                starts ? MPI_Ialltoallv(out, sizes, places, byte, in, got, to, byte, comm, r)
                       : MPI_Alltoallv(out, sizes, places, byte, in, got, to, byte, comm);
            }
        }
    }
    void together(const Call& call) {
        MPI_Request ignored = MPI_REQUEST_NULL;
        const bool starts = call.slot >= 0;
        MPI_Request* r = starts ? request(call.slot) : &ignored;
        const MPI_Comm comm = comms_[static_cast<std::size_t>(call.group)];
        unsigned char *out = at(call.out), *in = at(call.in);
        const int n = bytes(call.out), root = call.root;
        // Sums are of doubles where the size is one of them: adding them takes time too.
        const bool doubles = n % 8 == 0 && n > 0;
        const int numbers = doubles ? n / 8 : n;
        const MPI_Datatype type = doubles ? MPI_DOUBLE : MPI_BYTE;
        const MPI_Op sum = doubles ? MPI_SUM : MPI_BOR;
        switch (call.code) {
            case Code::barrier:
                starts ? MPI_Ibarrier(comm, r) : MPI_Barrier(comm);
                return;
            case Code::bcast:
                starts ? MPI_Ibcast(out, n, MPI_BYTE, root, comm, r)
                       : MPI_Bcast(out, n, MPI_BYTE, root, comm);
                return;
            case Code::reduce:
                starts ? MPI_Ireduce(out, in, numbers, type, sum, root, comm, r)
                       : MPI_Reduce(out, in, numbers, type, sum, root, comm);
                return;
            case Code::allreduce:
                starts ? MPI_Iallreduce(out, in, numbers, type, sum, comm, r)
                       : MPI_Allreduce(out, in, numbers, type, sum, comm);
                return;
            case Code::scan:
                MPI_Scan(out, in, numbers, type, sum, comm);
                return;
            case Code::exscan:
                MPI_Exscan(out, in, numbers, type, sum, comm);
                return;
            case Code::gather:
                starts ? MPI_Igather(out, n, MPI_BYTE, in, n, MPI_BYTE, root, comm, r)
                       : MPI_Gather(out, n, MPI_BYTE, in, n, MPI_BYTE, root, comm);
                return;
            case Code::scatter:
                starts ? MPI_Iscatter(out, n, MPI_BYTE, in, n, MPI_BYTE, root, comm, r)
                       : MPI_Scatter(out, n, MPI_BYTE, in, n, MPI_BYTE, root, comm);
                return;
            case Code::allgather:
                starts ? MPI_Iallgather(out, n, MPI_BYTE, in, n, MPI_BYTE, comm, r)
                       : MPI_Allgather(out, n, MPI_BYTE, in, n, MPI_BYTE, comm);
                return;
            case Code::alltoall:
                starts ? MPI_Ialltoall(out, n, MPI_BYTE, in, n, MPI_BYTE, comm, r)
                       : MPI_Alltoall(out, n, MPI_BYTE, in, n, MPI_BYTE, comm);
                return;
            default:
                starts ? MPI_Ireduce_scatter_block(out, in, numbers, type, sum, comm, r)
                       : MPI_Reduce_scatter_block(out, in, numbers, type, sum, comm);
        }
    }

    Session& session_;
    const Skeleton skeleton_;
    Buffer memory_;
    std::vector<MPI_Request> requests_, waited_;
    std::vector<MPI_Comm> comms_;
};

// What rank 0 reads: other hosts may not have the file.
std::string text_of(const Session& session, const std::string& name) {
    std::stringstream read;
    if (session.rank == 0) read << std::ifstream(name).rdbuf();
    std::string text = read.str();
    long size = static_cast<long>(text.size());
    MPI_Bcast(&size, 1, MPI_LONG, 0, session.comm);
    text.resize(static_cast<std::size_t>(size));
    MPI_Bcast(text.data(), static_cast<int>(size), MPI_CHAR, 0, session.comm);
    return text;
}

void measure(Session& session) {
    const Arguments& asked = session.arguments;
    const std::string text = text_of(session, asked.text.at("file"));
    Reader reader(text, session.rank, session.clock.spin_ns);
    session.give_up_if(reader.good() ? "" : asked.text.at("file") + " is no skeleton of calls");
    Replay replay(session, std::move(reader.found));
    session.give_up_if(replay.whole() ? "" : "no memory left for the messages");
    const std::string where = Object()
                                  .add("application", asked.text.at("application"))
                                  .add("ranks", session.ranks)
                                  .text();
    const auto once = [&] { replay(); };
    slowest_s(session, once);  // opens connections and maps memory
    const double seconds = slowest_s(session, once);
    set_delay(session, seconds);
    Series series = session.series(where, 1);
    for (long n = repetitions(asked, seconds); n > 0; --n)
        series.samples.push_back(slowest_s(session, once));
    session.keep(std::move(series));
}

}  // namespace

int main(int argc, char** argv) {
    Spec spec;
    spec.name = "replay";
    spec.summary = "The calls of another program, with computation of a given length between.";
    spec.ranks = Ranks::any;
    spec.metric = "time";
    spec.unit = "s";
    spec.sizes = nullptr;
    spec.likes = false;
    spec.data = false;
    spec.intervals = true;
    spec.options = options;
    spec.samples = 10;
    spec.max_case_s = 1;
    Session session(spec);
    session.start(argc, argv);
    measure(session);
    return session.finish();
}
