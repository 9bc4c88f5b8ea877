// The points of one rank: a block of the global grid, and the points of its neighbours beside it.
#pragma once

#include <mpi.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>
#include <vector>

#include "../common/repeated.hpp"

namespace paribus::conjugate_gradient {

using Triple = std::array<int, 3>;  // of x, y and z

inline double least_to_largest(const Triple& t) {
    return static_cast<double>(std::min({t[0], t[1], t[2]})) / std::max({t[0], t[1], t[2]});
}

// How many processes in x, y and z: those whose blocks have the least surface, most of them in x.
inline Triple shape_of(int ranks) {
    Triple best{ranks, 1, 1};
    const auto surface = [](const Triple& t) {
        return static_cast<long>(t[0]) * t[1] + static_cast<long>(t[1]) * t[2] +
               static_cast<long>(t[0]) * t[2];
    };
    for (int z = 1; z * z * z <= ranks; ++z)
        for (int y = z; ranks % z == 0 && y * y <= ranks / z; ++y) {
            const Triple shape{ranks / z / y, y, z};
            if (ranks / z % y == 0 && surface(shape) < surface(best)) best = shape;
        }
    return best;
}

// Columns of the matrix: this rank's points, x fastest, then those of each neighbour that touch.
class Block {
public:
    Block(const Triple& points, const Triple& processes, int rank)
        : points_(points), processes_(processes) {
        at_ = {rank % processes[0], rank / processes[0] % processes[1],
               rank / processes[0] / processes[1]};
        rows = static_cast<std::size_t>(points[0]) * static_cast<std::size_t>(points[1]) *
               static_cast<std::size_t>(points[2]);
        columns = rows;
        for (int d = 0; d < 27; ++d) add_neighbour({d % 3 - 1, d / 3 % 3 - 1, d / 9 - 1});
    }

    std::size_t rows = 0, columns = 0;

    const Triple& points() const { return points_; }
    const Triple& processes() const { return processes_; }

    // Of point (x, y, z), which may lie one step outside; -1 where the global grid ends.
    long column(const Triple& point) const {
        Triple side{};
        for (std::size_t k = 0; k < 3; ++k) side[k] = point[k] < 0 ? -1 : point[k] >= points_[k];
        if (side == Triple{}) return place(point, points_, {});
        const int other = by_side_[index_of(side)];
        if (other < 0) return -1;
        return static_cast<long>(neighbours_[static_cast<std::size_t>(other)].first) +
               place(point, extent(side), side);
    }

    // Brings the neighbours' values of a vector of `columns` elements.
    void exchange(double* vector, InMpi& in_mpi, MPI_Comm comm) {
        if (neighbours_.empty()) return;
        std::size_t n = 0;
        in_mpi([&] {
            for (const Neighbour& other : neighbours_)
                MPI_Irecv(vector + other.first, other.count(), MPI_DOUBLE, other.rank,
                          other.tag_of_others, comm, &requests_[n++]);
        });
        for (Neighbour& other : neighbours_)
            for (std::size_t i = 0; i < other.sent.size(); ++i)
                other.out[i] = vector[other.sent[i]];
        in_mpi([&] {
            for (const Neighbour& other : neighbours_)
                MPI_Isend(other.out.data(), other.count(), MPI_DOUBLE, other.rank, other.tag, comm,
                          &requests_[n++]);
            MPI_Waitall(static_cast<int>(n), requests_.data(), MPI_STATUSES_IGNORE);
        });
    }

private:
    struct Neighbour {
        int rank, tag, tag_of_others;
        std::size_t first;      // column of its points
        std::vector<int> sent;  // points of this rank that it needs, as many as it sends
        std::vector<double> out;
        int count() const { return static_cast<int>(sent.size()); }
    };

    static std::size_t index_of(const Triple& side) {
        return static_cast<std::size_t>(side[0] + 1 + 3 * (side[1] + 1) + 9 * (side[2] + 1));
    }
    // How many points a neighbour on that side has in each direction.
    Triple extent(const Triple& side) const {
        Triple e{};
        for (std::size_t k = 0; k < 3; ++k) e[k] = side[k] == 0 ? points_[k] : 1;
        return e;
    }
    static long place(const Triple& point, const Triple& e, const Triple& side) {
        Triple p{};
        for (std::size_t k = 0; k < 3; ++k) p[k] = side[k] == 0 ? point[k] : 0;
        return p[0] + static_cast<long>(e[0]) * (p[1] + static_cast<long>(e[1]) * p[2]);
    }

    void add_neighbour(const Triple& side) {
        by_side_[index_of(side)] = -1;
        Triple there{}, first{};
        for (std::size_t k = 0; k < 3; ++k) {
            there[k] = at_[k] + side[k];
            if (there[k] < 0 || there[k] >= processes_[k]) return;
            first[k] = side[k] > 0 ? points_[k] - 1 : 0;
        }
        if (side == Triple{}) return;
        Neighbour other{};
        other.rank = there[0] + processes_[0] * (there[1] + processes_[1] * there[2]);
        other.tag = static_cast<int>(index_of(side));
        other.tag_of_others = 26 - other.tag;
        other.first = columns;
        const Triple e = extent(side);
        for (int z = 0; z < e[2]; ++z)
            for (int y = 0; y < e[1]; ++y)
                for (int x = 0; x < e[0]; ++x)
                    other.sent.push_back(static_cast<int>(
                        place({first[0] + x, first[1] + y, first[2] + z}, points_, {})));
        other.out.resize(other.sent.size());
        columns += other.sent.size();
        by_side_[index_of(side)] = static_cast<int>(neighbours_.size());
        neighbours_.push_back(std::move(other));
        requests_.resize(2 * neighbours_.size());
    }

    Triple points_, processes_, at_{};
    std::array<int, 27> by_side_{};  // place among the neighbours, or -1
    std::vector<Neighbour> neighbours_;
    std::vector<MPI_Request> requests_;
};

}  // namespace paribus::conjugate_gradient
