// Stands for libcublasLt.so.13 beside the header of this folder: products of factors of float,
// double and int8, by loops.
#include <cstddef>
#include <cstdint>

namespace {
struct Layout {
    int type;
    std::size_t rows, columns;
};
template <class Factor, class Result>
void multiply(const void* first, const void* second, void* result, const Layout& a,
              const Layout& b) {
    for (std::size_t n = 0; n < b.columns; ++n)
        for (std::size_t m = 0; m < a.columns; ++m) {
            Result sum = 0;
            for (std::size_t k = 0; k < a.rows; ++k)
                sum += static_cast<Result>(static_cast<const Factor*>(first)[m * a.rows + k]) *
                       static_cast<Result>(static_cast<const Factor*>(second)[n * b.rows + k]);
            static_cast<Result*>(result)[n * a.columns + m] = sum;
        }
}
}  // namespace

extern "C" {
std::size_t cublasLtGetVersion() { return 0; }
int cublasLtCreate(void** to) { return *to = nullptr, 0; }
int cublasLtDestroy(void*) { return 0; }
int cublasLtMatmulDescCreate(void** to, int, int) { return *to = nullptr, 0; }
int cublasLtMatmulDescDestroy(void*) { return 0; }
int cublasLtMatmulDescSetAttribute(void*, int attribute, const void* value, std::size_t bytes) {
    return attribute == 3 && bytes == 4 && *static_cast<const int*>(value) == 1 ? 0 : 7;
}
int cublasLtMatrixLayoutCreate(void** to, int type, std::uint64_t rows, std::uint64_t columns,
                               std::int64_t apart) {
    *to = new Layout{type, rows, columns};
    return apart == static_cast<std::int64_t>(rows) ? 0 : 7;
}
int cublasLtMatrixLayoutDestroy(void* layout) { return delete static_cast<Layout*>(layout), 0; }
int cublasLtMatmulPreferenceCreate(void** to) { return *to = nullptr, 0; }
int cublasLtMatmulPreferenceDestroy(void*) { return 0; }
int cublasLtMatmulPreferenceSetAttribute(void*, int attribute, const void*, std::size_t bytes) {
    return attribute == 1 && bytes == 8 ? 0 : 7;
}
int cublasLtMatmulAlgoGetHeuristic(void*, void*, void* first, void*, void*, void*, void*, int asked,
                                   void*, int* found) {
    const int type = static_cast<Layout*>(first)->type;
    *found = asked;
    return type == 0 || type == 1 || type == 3 ? 0 : 15;
}
int cublasLtMatmul(void*, void*, const void* one, const void* first, void* of_first,
                   const void* second, void* of_second, const void*, const void*, void*,
                   void* result, void*, const void*, void*, std::size_t, void*) {
    const Layout &a = *static_cast<Layout*>(of_first), &b = *static_cast<Layout*>(of_second);
    if (a.type == 3) {
        if (*static_cast<const std::int32_t*>(one) != 1) return 7;
        multiply<std::int8_t, std::int32_t>(first, second, result, a, b);
    } else if (a.type == 1) {
        if (*static_cast<const double*>(one) != 1) return 7;
        multiply<double, double>(first, second, result, a, b);
    } else {
        if (*static_cast<const float*>(one) != 1) return 7;
        multiply<float, float>(first, second, result, a, b);
    }
    return 0;
}
}
