// How SP and BT share a cube of points: side^3 cells on side^2 ranks. Each plane of cells, across
// any axis, has one cell of every rank, so that in a sweep along the axis all ranks compute at all
// times (a diagonal multipartition, as in NPB 3.3: make_set.f).
#pragma once

#include <array>

#include "lanes.hpp"
#include "run.hpp"

namespace paribus::npb::adi {

// A block of the cube. Its points lie in rows along x, `lanes` of them side by side: first number
// of each, second number of each, up to the fifth. Two planes beyond each face belong to
// neighbours.
struct Cell {
    std::array<int, 3> low, size;   // of the points
    std::array<int, 3> begin, end;  // of those that are solved, which the cube's faces are not
    std::array<long, 3> step;       // to the next lanes, to the next row, to the next plane
    std::vector<Lanes> u, rhs, forcing;
    // What is beyond the faces along x: of each row the five numbers of two points, one by one.
    const double* beyond[2] = {nullptr, nullptr};

    Cell(const std::array<int, 3>& place, int side, int points) {
        for (std::size_t a = 0; a < 3; ++a) {
            const int wider = points % side;
            low[a] = place[a] * (points / side) + std::min(place[a], wider);
            size[a] = points / side + (place[a] < wider ? 1 : 0);
            begin[a] = place[a] == 0 ? 1 : 0;
            end[a] = size[a] - (place[a] == side - 1 ? 1 : 0);
        }
        // An odd number of cache lines apart, for others fall on each other in a cache.
        const long row = 5L * ((size[0] + lanes - 1) / lanes) | 1;
        step = {5, row, row * (size[1] + 4) | 1};
        for (auto* const field : {&u, &rhs, &forcing})
            field->resize(static_cast<std::size_t>(step[2] * (size[2] + 4)));
        // Lanes without a point are computed as well: there a fluid is at rest.
        for (int k = -2; k < size[2] + 2; ++k)
            for (int j = -2; j < size[1] + 2; ++j)
                for (int i = 0; i < size[0]; i += lanes)
                    for (const std::size_t m : {0, 4})
                        u[at(i, j, k) + m] = {1, 1, 1, 1, 1, 1, 1, 1};
    }

    bool at_start(std::size_t axis) const { return begin[axis] > 0; }
    bool at_end(std::size_t axis) const { return end[axis] < size[axis]; }

    // Where the lanes are that have a point.
    std::size_t at(int i, int j, int k) const {
        return static_cast<std::size_t>(i / lanes * step[0] + (j + 2) * step[1] +
                                        (k + 2) * step[2]);
    }

    // Calls `each(i, j, k)` for the points, or those that are solved.
    template <class Each>
    void points(bool solved, Each each) const {
        const std::array<int, 3> from = solved ? begin : std::array<int, 3>{};
        const std::array<int, 3> to = solved ? end : size;
        for (int k = from[2]; k < to[2]; ++k)
            for (int j = from[1]; j < to[1]; ++j)
                for (int i = from[0]; i < to[0]; ++i) each(i, j, k);
    }

    // How many points a plane across an axis has.
    int faced(std::size_t axis) const { return size[0] * size[1] * size[2] / size[axis]; }

    // Moves the states of two planes from `plane` on to a message, or from it; those beyond the
    // faces along x stay in the message. Returns its rest.
    double* move(std::size_t axis, int plane, double* message, bool out) {
        if (axis == 0 && !out) {
            beyond[plane < 0 ? 0 : 1] = message;
            return message + 10 * faced(0);
        }
        std::array<int, 3> from{}, to = size;
        from[axis] = plane;
        to[axis] = plane + 2;
        const int together = axis == 0 ? 1 : lanes;
        for (int k = from[2]; k < to[2]; ++k)
            for (int j = from[1]; j < to[1]; ++j)
                for (int i = from[0]; i < to[0]; i += together)
                    for (std::size_t m = 0; m < 5; ++m) {
                        const int width = std::min(together, to[0] - i);
                        double* const here = &u[at(i, j, k) + m][i % lanes];
                        if (out) std::copy_n(here, width, message);
                        else std::copy_n(message, width, here);
                        message += width;
                    }
        return message;
    }
};

// What goes up or down along an axis: two planes of states, of each cell to its neighbour.
struct Face {
    std::size_t axis;
    bool up;
    std::vector<double> out, in;

    bool leaves(const Cell& cell) const { return up ? !cell.at_end(axis) : !cell.at_start(axis); }
    bool enters(const Cell& cell) const { return up ? !cell.at_start(axis) : !cell.at_end(axis); }
};

// This rank's cells, by their place along z, and whom it sends to.
class Cells {
public:
    Cells(const Launch& l, int points) : comm_(l.comm) {
        while (side * side < l.ranks) ++side;
        column_ = l.rank % side;
        row_ = l.rank / side;
        for (int c = 0; c < side; ++c)
            all.push_back(Cell({wrapped(column_ + c), wrapped(row_ - c), c}, side, points));
        for (const Cell& cell : all)
            for (Face& face : faces_) {
                const auto area = static_cast<std::size_t>(cell.faced(face.axis));
                if (face.leaves(cell)) face.out.resize(face.out.size() + 10 * area);
                if (face.enters(cell)) face.in.resize(face.in.size() + 10 * area);
            }
    }

    int side = 1;
    std::vector<Cell> all;

    // The cell that is at a place along an axis.
    Cell& placed(std::size_t axis, int place) {
        const int found[] = {wrapped(place - column_), wrapped(row_ - place), place};
        return all[static_cast<std::size_t>(found[axis])];
    }

    // The rank whose cells follow this one's along an axis, or precede them.
    int neighbour(std::size_t axis, bool after) const {
        const int by = after ? 1 : -1;
        const int column = axis == 0 ? by : axis == 2 ? -by : 0, row = axis == 0 ? 0 : by;
        return wrapped(column_ + column) + side * wrapped(row_ + row);
    }

    // Brings the states beyond the cells' faces: one message each way along each axis.
    void exchange(InMpi& in_mpi) {
        if (side == 1) return;
        MPI_Request requests[12];
        for (int f = 0; f < 6; ++f) {
            Face& face = faces_[f];
            double* end = face.out.data();
            for (Cell& cell : all)
                if (face.leaves(cell))
                    end = cell.move(face.axis, face.up ? cell.size[face.axis] - 2 : 0, end, true);
            in_mpi([&] {
                MPI_Irecv(face.in.data(), static_cast<int>(face.in.size()), MPI_DOUBLE,
                          neighbour(face.axis, !face.up), f, comm_, &requests[f]);
                MPI_Isend(face.out.data(), static_cast<int>(face.out.size()), MPI_DOUBLE,
                          neighbour(face.axis, face.up), f, comm_, &requests[6 + f]);
            });
        }
        in_mpi([&] { MPI_Waitall(12, requests, MPI_STATUSES_IGNORE); });
        for (Face& face : faces_) {
            double* end = face.in.data();
            for (Cell& cell : all)
                if (face.enters(cell))
                    end = cell.move(face.axis, face.up ? -2 : cell.size[face.axis], end, false);
        }
    }

private:
    int wrapped(int place) const { return (place + side) % side; }

    const MPI_Comm comm_;
    int column_ = 0, row_ = 0;
    Face faces_[6] = {{0, true, {}, {}},  {0, false, {}, {}}, {1, true, {}, {}},
                      {1, false, {}, {}}, {2, true, {}, {}},  {2, false, {}, {}}};
};

}  // namespace paribus::npb::adi
