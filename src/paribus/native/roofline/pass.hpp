// One pass over pairs of numbers, compiled for one width of vectors: this file is included once for
// each, with PARIBUS_WIDTH (bytes of a vector) and PARIBUS_TARGET (attributes of the function).

template <class T>
PARIBUS_TARGET void pass(T* first, T* second, std::size_t n, const Work<T>& work) {
    typedef T Vector __attribute__((vector_size(PARIBUS_WIDTH), may_alias));
    constexpr std::size_t lanes = PARIBUS_WIDTH / sizeof(T);
    const Vector factor = Vector{} + work.factor, one = Vector{} + work.one,
                 two = Vector{} + work.two;
    for (std::size_t i = 0; i < n; i += group * lanes) {
        Vector x[group], y[group];
        PARIBUS_UNROLL for (std::size_t k = 0; k < group; ++k) {
            x[k] = *reinterpret_cast<Vector*>(first + i + k * lanes);
            y[k] = *reinterpret_cast<Vector*>(second + i + k * lanes);
        }
        if (work.operations <= 2) {
            PARIBUS_UNROLL for (std::size_t k = 0; k < group; ++k) {
                x[k] += one;
                if (work.operations == 2) y[k] += one;
            }
        } else if (work.operations == 4) {
            PARIBUS_UNROLL for (std::size_t k = 0; k < group; ++k) {
                x[k] = x[k] * factor + one;
                y[k] = y[k] * factor + one;
            }
        }
        for (long round = work.operations / 8; round > 0; --round) {
            PARIBUS_UNROLL for (std::size_t k = 0; k < group; ++k) {
                x[k] = x[k] * factor + one;
                y[k] = y[k] * factor + one;
            }
            PARIBUS_UNROLL for (std::size_t k = 0; k < group; ++k) {
                x[k] = x[k] * factor + two;
                y[k] = y[k] * factor + two;
            }
        }
        PARIBUS_UNROLL for (std::size_t k = 0; k < group; ++k) {
            *reinterpret_cast<Vector*>(first + i + k * lanes) = y[k];
            *reinterpret_cast<Vector*>(second + i + k * lanes) = x[k];
        }
    }
}
