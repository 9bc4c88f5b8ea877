// Storage: what all ranks together write to files and read from them, in order and at random
// places, and how many small files they create, look up and remove.
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cmath>
#include <map>

#include "common/repeated.hpp"

using namespace paribus;

namespace {

constexpr Option options[] = {
    {"directory", "", "where the files go, instead of $PARIBUS_DIRECTORY or else $TMPDIR"},
    {"access",
     "file-per-rank",
     "a file for each rank, or one",
     0,
     0,
     false,
     {"file-per-rank", "shared-file"}},
    {"mode",
     "buffered",
     "through the page cache, or O_DIRECT",
     0,
     0,
     false,
     {"buffered", "direct"}},
    {"size", "67108864", "bytes of each rank", 4096, LONG_MAX},
    {"transfer", "1048576", "bytes of a write or read in order", 4096, INT_MAX},
    {"random", "4096", "bytes of a write or read at a random place", 4096, INT_MAX},
    {"operations", "500", "writes or reads at random places, each rank", 1, INT_MAX},
    {"files", "500", "empty files of each rank", 1, INT_MAX},
    {}};

constexpr std::size_t block = 4096;  // of O_DIRECT, and what a stamp stands for
constexpr const char* ops[] = {"write",  "read", "random_read", "random_write",
                               "create", "stat", "unlink"};

int remove_one(const char* path, const struct stat*, int, struct FTW*) { return ::remove(path); }

// Removes a directory with all that is in it, or what is left of it.
void remove_tree(const std::string& path) {
    nftw(path.c_str(), remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

// A child that removes a directory when this process has gone, by whatever, SIGKILL included. It is
// forked before MPI is started, and out of the group of processes that a launcher ends.
class Watcher {
public:
    Watcher() {
        int ends[2];
        if (pipe(ends) != 0) return;
        child_ = fork();
        if (child_ == 0) wait_in_child(ends);
        close(ends[0]);
        fcntl(ends[1], F_SETFD, FD_CLOEXEC);
        to_ = ends[1];
    }
    ~Watcher() {
        if (to_ >= 0) close(to_);
        if (child_ > 0) waitpid(child_, nullptr, 0);
    }
    Watcher(const Watcher&) = delete;
    Watcher& operator=(const Watcher&) = delete;

    // From now on it removes `path`; it knows none at first.
    void watch(const std::string& path) const {
        const std::string line = path + '\n';
        if (to_ >= 0 && ::write(to_, line.data(), line.size()) < 0) return;
    }

private:
    [[noreturn]] static void wait_in_child(const int* ends) {
        setsid();
        for (const int one : {SIGTERM, SIGINT, SIGHUP}) signal(one, SIG_IGN);
        dup2(ends[0], 0);
        for (int fd = 1; fd < 256; ++fd) close(fd);
        std::string path;
        char c = 0;
        while (::read(0, &c, 1) == 1) path += c;
        path = path.substr(0, path.find('\n'));  // rank 0 says it twice
        if (chdir("/") == 0 && !path.empty()) remove_tree(path);
        _exit(0);
    }
    pid_t child_ = -1;
    int to_ = -1;
};

// Writer, place and repetition of a block, which it begins with: what is stale or from elsewhere
// shows.
std::uint64_t stamp(int writer, std::size_t offset, unsigned round) {
    std::uint64_t x = (static_cast<std::uint64_t>(writer) << 40) ^ (offset / block) ^
                      (static_cast<std::uint64_t>(round) << 56);
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

class Storage {
public:
    Storage(Session& session, const Watcher& watcher)
        : session_(session),
          directory_(wanted_directory()),
          size_(number("size")),
          transfer_(number("transfer")),
          random_(number("random")),
          operations_(number("operations")),
          files_(number("files")),
          shared_(text("access") == "shared-file"),
          direct_(text("mode") == "direct"),
          buffer_(transfer_),
          noise_(transfer_) {
        refuse_sizes();
        // No file system makes less of it by compression: it repeats only after a whole transfer.
        for (std::size_t i = 0; i < transfer_; i += 8) {
            const std::uint64_t word = stamp(1 << 20, i * block, 0);
            std::memcpy(noise_.data + i, &word, 8);
        }
        open_directory(watcher);
    }

    // All operations once, each timed; with `thorough` every byte is compared, and not a stamp for
    // each block only.
    void repeat(bool thorough) {
        thorough_ = thorough;
        round_ = round_ % 127 + 1;
        open_files();
        timed("write", [&] { in_order(&Storage::write_at, round_); });
        cool("read");
        timed("read", [&] { in_order(&Storage::read_at, round_); });
        check("read");
        cool("random_read");
        posix_fadvise(partners_, 0, 0, POSIX_FADV_RANDOM);  // no more than what is asked for
        timed("random_read", [&] { at_random(&Storage::read_at, partner_, round_); });
        check("random_read");
        timed("random_write", [&] { at_random(&Storage::write_at, session_.rank, round_ + 128); });
        at_random(&Storage::read_back, session_.rank, round_ + 128);
        check("random_write");
        close_files();
        timed("create", [&] { create(); });
        timed("stat", [&] { look_up(); });
        timed("unlink", [&] { unlink_all(); });
    }

    double seconds_of_all() const {
        double all = 0;
        for (const auto& one : seconds_) all += one.second.back();
        return all;
    }

    // The first repetition was not to be measured; it says how long each operation takes.
    void begin() {
        for (auto& one : seconds_) usual_[one.first] = one.second.back();
        seconds_.clear();
        cached_.clear();
    }

    void keep_all() {
        const double bytes = static_cast<double>(size_), all = session_.ranks;
        for (const char* op : ops) {
            const std::string name = op;
            const bool moves = name == "write" || name == "read",
                       random = name.rfind("random", 0) == 0;
            const double each =
                moves ? 1e-6 * bytes : static_cast<double>(random ? operations_ : files_);
            Series series{where(op), moves ? "bandwidth" : "rate", 1, {},
                          {},        moves ? "MB/s" : "1/s"};
            for (const double s : seconds_.at(op)) series.samples.push_back(all * each / s);
            const auto cached = cached_.find(op);
            if (cached != cached_.end()) {
                double sum = 0;
                for (const double share : cached->second) sum += share;
                const double mean = sum / static_cast<double>(cached->second.size());
                series.more = Object()
                                  .add("cached", mean)
                                  .add("written_by", common_ ? "the next rank" : "itself")
                                  .text();
            }
            session_.keep(std::move(series));
        }
    }

    void remove() {
        remove_tree(mine("files-"));
        MPI_Barrier(MPI_COMM_WORLD);
        rmdir(folder_.c_str());
    }

private:
    using Transfer = void (Storage::*)(int, std::size_t, std::size_t, unsigned);

    std::size_t number(const char* name) const {
        return static_cast<std::size_t>(session_.arguments.numbers.at(name)[0]);
    }
    const std::string& text(const char* name) const { return session_.arguments.text.at(name); }
    static std::string where(const char* op) { return Object().add("op", op).text(); }
    std::string mine(const char* what, int rank = -1) const {
        return folder_ + '/' + what + std::to_string(rank < 0 ? session_.rank : rank);
    }
    void fail(const std::string& what) {
        if (failure_.empty()) failure_ = what + ": " + std::strerror(errno);
    }

    // The environment counts where no argument does, so that each arm may have a directory.
    std::string wanted_directory() const {
        if (!text("directory").empty()) return text("directory");
        for (const char* name : {"PARIBUS_DIRECTORY", "TMPDIR"})
            if (const char* const value = std::getenv(name)) return value;
        return "";
    }

    void refuse_sizes() {
        if (directory_.empty())
            session_.refuse("neither --directory nor PARIBUS_DIRECTORY nor TMPDIR names one");
        for (const char* name : {"size", "transfer", "random"})
            if (number(name) % block != 0)
                session_.refuse(std::string("--") + name + " is not a multiple of 4096");
        if (size_ % transfer_ != 0) session_.refuse("--size is not a multiple of --transfer");
        if (transfer_ % random_ != 0) session_.refuse("--transfer is not a multiple of --random");
    }

    // Makes a directory of our own, on every node if they do not share one, with room for the
    // files.
    void open_directory(const Watcher& watcher) {
        std::uint64_t ident =
            static_cast<std::uint64_t>(now_ns()) ^ (static_cast<std::uint64_t>(getpid()) << 40);
        MPI_Bcast(&ident, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
        char name[48];
        std::snprintf(name, sizeof name, "/paribus-storage-%016llx",
                      static_cast<unsigned long long>(ident));
        folder_ = directory_ + name;
        std::string wrong;
        // Rank 0 first: who then sees its directory shares it.
        if (session_.rank == 0 && mkdir(folder_.c_str(), 0700) != 0) wrong = std::strerror(errno);
        if (session_.rank == 0 && wrong.empty()) watcher.watch(folder_);
        MPI_Barrier(MPI_COMM_WORLD);
        int sees = access(folder_.c_str(), F_OK) == 0, all = 0;
        MPI_Allreduce(&sees, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
        common_ = all != 0;
        if (sees == 0 && session_.rank != 0 && mkdir(folder_.c_str(), 0700) != 0 && errno != EEXIST)
            wrong = std::strerror(errno);
        if (wrong.empty()) watcher.watch(folder_);
        if (wrong.empty() && mkdir(mine("files-").c_str(), 0700) != 0) wrong = std::strerror(errno);
        give_up_if(wrong.empty() ? "" : "no files can be made in " + directory_ + ": " + wrong);
        if (shared_ && !common_)
            give_up_if("--access shared-file needs a directory that all ranks see, and " +
                       directory_ + " is another one on each node");
        partner_ = common_ ? (session_.rank + 1) % session_.ranks : session_.rank;
        struct statvfs room{};
        double free_bytes =
            statvfs(folder_.c_str(), &room) == 0
                ? static_cast<double>(room.f_bavail) * static_cast<double>(room.f_frsize)
                : 0;
        const double needed = static_cast<double>(size_) * (common_ ? session_.ranks : 1);
        if (free_bytes < needed)
            wrong =
                directory_ + " has room for " + mib(free_bytes) + ", the files need " + mib(needed);
        give_up_if(wrong);
    }

    // Ends all ranks where one has a sentence to say; nothing stays behind.
    void give_up_if(const std::string& wrong) {
        int mine = wrong.empty() ? 0 : 1, any = 0;
        MPI_Allreduce(&mine, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
        if (any != 0) remove_tree(folder_);
        session_.give_up_if(wrong);
    }

    std::string data_of(int rank) const {
        return shared_ ? folder_ + "/shared" : mine("data-", rank);
    }

    int opened(int rank, int flags) {
        const int fd =
            open(data_of(rank).c_str(), flags | (direct_ ? O_DIRECT : 0) | O_CLOEXEC, 0600);
        if (fd < 0 && errno == EINVAL && direct_) {
            if (failure_.empty())
                failure_ =
                    "the file system of " + directory_ + " has no O_DIRECT; use --mode buffered";
        } else if (fd < 0) {
            fail(data_of(rank));
        }
        return fd;
    }
    void open_files() {
        own_ = opened(session_.rank, O_RDWR | O_CREAT);
        give_up_if(failure_);
        partners_ = opened(partner_, O_RDONLY);
        give_up_if(failure_);
    }
    void close_files() {
        for (const int fd : {own_, partners_}) close(fd);
        MPI_Barrier(MPI_COMM_WORLD);
        ::unlink(data_of(session_.rank).c_str());  // of a shared one, by the first that comes
        MPI_Barrier(MPI_COMM_WORLD);
    }

    template <class Work>
    void timed(const char* op, Work work) {
        const auto usual = usual_.find(op);
        if (usual != usual_.end()) set_delay(session_, usual->second);
        const double seconds = slowest_s(session_, [&] {
            work();
            session_.delay();
        });
        give_up_if(failure_.empty() ? "" : where(op) + ": " + failure_);
        seconds_[op].push_back(seconds);
    }

    std::size_t start_of(int rank) const {
        return shared_ ? size_ * static_cast<std::size_t>(rank) : 0;
    }

    void in_order(Transfer transfer, unsigned round) {
        const bool writes = transfer == &Storage::write_at;
        for (std::size_t at = 0; at < size_ && failure_.empty(); at += transfer_)
            (this->*transfer)(writes ? session_.rank : partner_, at, transfer_, round);
        if (writes && failure_.empty() && fsync(own_) != 0) fail("fsync");
    }

    // The same places in every launch, those of a rank's own among `slots` that do not overlap.
    void at_random(Transfer transfer, int owner, unsigned round) {
        const std::size_t slots = size_ / random_;
        for (std::size_t i = 0; i < operations_ && failure_.empty(); ++i)
            (this->*transfer)(owner, stamp(owner, i * block, 0) % slots * random_, random_, round);
        if (transfer == &Storage::write_at && failure_.empty() && fsync(own_) != 0) fail("fsync");
    }

    // What is written at a place; but for its stamps it is the same in all rounds.
    unsigned char* noise_at(std::size_t at) const { return noise_.data + at % transfer_; }

    void write_at(int owner, std::size_t at, std::size_t bytes, unsigned round) {
        unsigned char* const from = noise_at(at);
        for (std::size_t i = 0; i < bytes; i += block) {
            const std::uint64_t word = stamp(owner, at + i, round);
            std::memcpy(from + i, &word, sizeof word);
        }
        for (std::size_t done = 0; done < bytes;) {
            const ssize_t n = pwrite(own_, from + done, bytes - done,
                                     static_cast<off_t>(start_of(owner) + at + done));
            if (n <= 0) return fail("write");
            done += static_cast<std::size_t>(n);
        }
    }
    void read_at(int owner, std::size_t at, std::size_t bytes, unsigned round) {
        receive(partners_, owner, at, bytes, round);
    }
    void read_back(int owner, std::size_t at, std::size_t bytes, unsigned round) {
        receive(own_, owner, at, bytes, round);
    }
    void receive(int fd, int owner, std::size_t at, std::size_t bytes, unsigned round) {
        for (std::size_t done = 0; done < bytes;) {
            const ssize_t n = pread(fd, buffer_.data + done, bytes - done,
                                    static_cast<off_t>(start_of(owner) + at + done));
            if (n < 0) return fail("read");
            if (n == 0) {
                failure_ = "read: the file ends too early";
                return;
            }
            done += static_cast<std::size_t>(n);
        }
        session_.corrupt(buffer_.data, 1);
        for (std::size_t i = 0; i < bytes; i += block) {
            const std::uint64_t word = stamp(owner, at + i, round);
            const unsigned char* const found = buffer_.data + i;
            bool right = std::memcmp(found, &word, sizeof word) == 0;
            if (thorough_)
                right = right && std::memcmp(found + sizeof word, noise_at(at + i) + sizeof word,
                                             block - sizeof word) == 0;
            if (!right && wrong_ < 0) wrong_ = static_cast<long>((at + i) / block);
        }
        checked_ += bytes / block;
    }
    void check(const char* op) {
        give_up_if(failure_);
        int wrong = wrong_ >= 0, any = 0;
        MPI_Allreduce(&wrong, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
        if (any != 0) remove_tree(folder_);
        session_.verify(where(op), wrong_, checked_);
        checked_ = 0;
    }

    // Drops what page caches hold of the files, as far as the kernels do it: that needs no
    // privilege. What is left of it is said with the figures.
    void cool(const char* op) {
        for (const int fd : {own_, partners_}) posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
        MPI_Barrier(MPI_COMM_WORLD);
        cached_[op].push_back(cached_share());
    }

    // Which share of what this rank is about to read lies in this node's page cache; the mean of
    // all.
    double cached_share() const {
        void* const memory = mmap(nullptr, size_, PROT_READ, MAP_SHARED, partners_,
                                  static_cast<off_t>(start_of(partner_)));
        double share = std::nan(""), sum = 0;  // where the kernel does not say
        if (memory != MAP_FAILED) {
            const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
            std::vector<unsigned char> pages((size_ + page - 1) / page);
            double cached = 0;
            if (mincore(memory, size_, pages.data()) == 0) {
                for (const unsigned char one : pages) cached += one & 1;
                share = cached / static_cast<double>(pages.size());
            }
            munmap(memory, size_);
        }
        MPI_Allreduce(&share, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        return sum / session_.ranks;
    }

    std::string small(int rank, std::size_t i) const {
        return mine("files-", rank) + '/' + std::to_string(i);
    }
    // The entries of a directory are safe only then. Some file systems have no such call.
    void sync_folder() const {
        const int fd = open(mine("files-").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd >= 0 && fsync(fd) == 0) errno = 0;
        close(fd);
    }
    void create() {
        for (std::size_t i = 0; i < files_ && failure_.empty(); ++i) {
            const int fd = open(small(session_.rank, i).c_str(),
                                O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
            if (fd < 0 || close(fd) != 0) fail("a small file");
        }
        sync_folder();
    }
    void look_up() {
        struct stat found{};
        for (std::size_t i = 0; i < files_ && failure_.empty(); ++i)
            if (stat(small(partner_, i).c_str(), &found) != 0) fail("a small file");
    }
    void unlink_all() {
        for (std::size_t i = 0; i < files_ && failure_.empty(); ++i)
            if (::unlink(small(session_.rank, i).c_str()) != 0) fail("a small file");
        sync_folder();
    }

    Session& session_;
    const std::string directory_;
    const std::size_t size_, transfer_, random_, operations_, files_;
    const bool shared_, direct_;
    Buffer buffer_, noise_;
    std::string folder_, failure_;
    bool common_ = false, thorough_ = false;
    int partner_ = 0, own_ = -1, partners_ = -1;
    unsigned round_ = 0;
    long wrong_ = -1;
    std::size_t checked_ = 0;
    std::map<std::string, std::vector<double>> seconds_;
    std::map<std::string, double> usual_;
    std::map<std::string, std::vector<double>> cached_;
};

}  // namespace

int main(int argc, char** argv) {
    const Watcher watcher;
    Spec spec;
    spec.name = "storage";
    spec.summary = "Files written and read by all ranks, and small files created and removed.";
    spec.unit = "MB/s";
    spec.sizes = nullptr;
    spec.likes = false;
    spec.intervals = true;
    spec.options = options;
    spec.samples = 3;
    spec.max_case_s = 30;
    Session session(spec);
    session.start(argc, argv);
    Storage storage(session, watcher);
    storage.repeat(true);
    const double seconds = storage.seconds_of_all();
    storage.begin();
    for (long n = repetitions(session.arguments, seconds); n > 0; --n) storage.repeat(false);
    storage.keep_all();
    storage.remove();
    return session.finish();
}
