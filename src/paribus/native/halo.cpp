// Halo: the time in which all ranks exchange faces with their neighbours on a periodic grid.
#include "common/cases.hpp"

using namespace paribus;

struct Halo : Case {
    static constexpr int most_dims = 3;
    static constexpr Option options[] = {{"dims", "2", "of the grid of ranks: 2 or 3", 2, 3}, {}};
    static constexpr Spec spec() {
        Spec spec;
        spec.name = "halo";
        spec.summary = "Time of an exchange with all neighbours on a periodic grid, slowest rank.";
        spec.ranks = Ranks::several;
        spec.metric = "time";
        spec.unit = "us";
        spec.likes = false;
        spec.blocks = 2 * most_dims;
        spec.buffers = 4 * most_dims;
        spec.options = options;
        return spec;
    }
    Halo(Session& s, long bytes)
        : Case(s, bytes),
          dims(static_cast<int>(s.arguments.numbers.at("dims").front())),
          grid(static_cast<std::size_t>(dims)) {
        const std::vector<int> periodic(grid.size(), 1);
        MPI_Dims_create(ranks, dims, grid.data());
        MPI_Cart_create(comm, dims, grid.data(), periodic.data(), 0, &cart);
        for (int d = 0; d < dims; ++d)
            MPI_Cart_shift(cart, d, 1, &neighbours[2 * d], &neighbours[2 * d + 1]);
    }
    ~Halo() { MPI_Comm_free(&cart); }
    Halo(const Halo&) = delete;
    Halo& operator=(const Halo&) = delete;

    // Face 2 d is the lower one in dimension d, 2 d + 1 the upper one: what arrives at a face left
    // its neighbour by the opposite one. The tag says by which, for both neighbours may be one
    // rank.
    void call(long) {
        for (int f = 0; f < 2 * dims; ++f)
            MPI_Irecv(face(in, f), count, MPI_BYTE, neighbours[f], f ^ 1, cart, requests + f);
        for (int f = 0; f < 2 * dims; ++f)
            MPI_Isend(face(out, f), count, MPI_BYTE, neighbours[f], f, cart,
                      requests + 2 * dims + f);
        MPI_Waitall(4 * dims, requests, MPI_STATUSES_IGNORE);
    }
    void prepare() const {
        for (int f = 0; f < 2 * dims; ++f) {
            fill(face(out, f), size, rank, neighbours[f], data_of(f));
            poison(face(in, f), size, neighbours[f], rank, data_of(f ^ 1));
        }
    }
    std::size_t expected() const { return size * static_cast<std::size_t>(2 * dims); }
    long wrong() const {
        for (int f = 0; f < 2 * dims; ++f) {
            const long wrong = first_wrong(face(in, f), size, neighbours[f], rank, data_of(f ^ 1));
            if (wrong >= 0) return wrong + static_cast<long>(f) * count;
        }
        return -1;
    }
    double figure(double ns) const { return 1e-3 * ns; }
    std::string more() const { return Object().add("grid", grid).text(); }

private:
    unsigned char* face(const Buffer& buffer, int f) const {
        return buffer.data + static_cast<std::size_t>(f) * size;
    }
    unsigned data_of(int f) const { return salt * 8 + static_cast<unsigned>(f); }

    const int dims;
    std::vector<int> grid;
    MPI_Comm cart = MPI_COMM_NULL;
    int neighbours[2 * most_dims] = {};
    MPI_Request requests[4 * most_dims];
};

int main(int argc, char** argv) { return run<Halo>(argc, argv); }
