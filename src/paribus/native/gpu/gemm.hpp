// Products of matrices by a GPU's matrix units, as cuBLASLt computes them.
#pragma once

#include <cstdint>

#include "device.hpp"

namespace paribus::gpu {

// A type of the factors as cuBLASLt numbers it (cublasLt.h, library_types.h of CUDA), and what the
// tests of results need. Elements are random multiples of 1 / (steps + 1) below 1, or whole numbers
// where that is 0 bits: each is exact in its type, so an error is one of the product.
struct GemmType {
    const char* name;
    int factors, compute, scale, result;
    std::size_t bytes, result_bytes;
    int bias, mantissa;  // of a type of 8 or 16 bits, 0 where the host has it
    int steps;
    double share;  // of the right result and 1, by which one may be wrong
};
constexpr GemmType gemm_types[] = {
    {"bf16", 14, 68, 0, 14, 2, 2, 127, 7, 127, 1.0 / 128},
    {"fp16", 2, 68, 0, 2, 2, 2, 15, 10, 127, 1.0 / 1024},
    {"tf32", 0, 77, 0, 0, 4, 4, 0, 0, 1023, 1.0 / 512},
    {"fp8", 28, 68, 0, 14, 1, 2, 7, 3, 7, 1.0 / 32},
    {"double", 1, 70, 1, 1, 8, 8, 0, 0, 1048575, 1e-12},
    {"int8", 3, 72, 10, 10, 1, 4, 0, 0, 127, 0},
};

// The functions of cuBLASLt.
class CublasLt {
public:
    explicit CublasLt(Session& session)
        : library_(
              session, {"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so.11"},
              "none of cuBLASLt's libcublasLt.so.13, .12 and .11 is found, and AMD's GPUs have "
              "none") {
        library_.find(session, "cublasLtGetVersion", version);
        library_.find(session, "cublasLtCreate", create);
        library_.find(session, "cublasLtDestroy", destroy);
        library_.find(session, "cublasLtMatmulDescCreate", describe);
        library_.find(session, "cublasLtMatmulDescDestroy", forget_description);
        library_.find(session, "cublasLtMatmulDescSetAttribute", set);
        library_.find(session, "cublasLtMatrixLayoutCreate", lay_out);
        library_.find(session, "cublasLtMatrixLayoutDestroy", forget_layout);
        library_.find(session, "cublasLtMatmulPreferenceCreate", prefer);
        library_.find(session, "cublasLtMatmulPreferenceDestroy", forget_preference);
        library_.find(session, "cublasLtMatmulPreferenceSetAttribute", set_preference);
        library_.find(session, "cublasLtMatmulAlgoGetHeuristic", choose);
        library_.find(session, "cublasLtMatmul", multiply);
    }
    static void must(Session& session, int error, const std::string& what) {
        if (error != 0)
            session.give_up_if("cuBLASLt: " + what + ": error " + std::to_string(error));
    }
    struct Algorithm {
        std::uint64_t data[8];
    };
    struct Choice {
        Algorithm algorithm;
        std::size_t workspace;
        int state;
        float waves;
        int reserved[4];
    };
    std::size_t (*version)() = nullptr;
    int (*create)(void**) = nullptr;
    int (*destroy)(void*) = nullptr;
    int (*describe)(void**, int, int) = nullptr;
    int (*forget_description)(void*) = nullptr;
    int (*set)(void*, int, const void*, std::size_t) = nullptr;
    int (*lay_out)(void**, int, std::uint64_t, std::uint64_t, std::int64_t) = nullptr;
    int (*forget_layout)(void*) = nullptr;
    int (*prefer)(void**) = nullptr;
    int (*forget_preference)(void*) = nullptr;
    int (*set_preference)(void*, int, const void*, std::size_t) = nullptr;
    int (*choose)(void*, void*, void*, void*, void*, void*, void*, int, Choice*, int*) = nullptr;
    int (*multiply)(void*, void*, const void*, const void*, void*, const void*, void*, const void*,
                    const void*, void*, void*, void*, const Algorithm*, void*, std::size_t,
                    cudaStream_t) = nullptr;

private:
    Library library_;
};

// Element i of a factor: random, for zeros and regular data need less power and run faster. The
// hash is the last step of MurmurHash3 (Appleby, public domain).
__device__ inline double element_of(std::size_t i, unsigned factor, int steps, bool whole) {
    std::uint64_t h = (i + 1) * 2 + factor;
    h = (h ^ (h >> 33)) * 0xff51afd7ed558ccdULL;
    h = (h ^ (h >> 33)) * 0xc4ceb9fe1a85ec53ULL;
    const auto limit = static_cast<std::uint64_t>(2 * steps + 1);
    const double step = static_cast<double>((h ^ (h >> 33)) % limit) - steps;
    return whole ? step : step / (steps + 1);
}
// The bits of a type of 8 or 16 bits for a number that it has, and the number of such bits.
__device__ inline unsigned encoded(float x, int bias, int mantissa, int width) {
    if (x == 0) return 0;
    unsigned bits = 0;
    memcpy(&bits, &x, sizeof bits);
    const int exponent = static_cast<int>(bits >> 23 & 255) - 127 + bias;
    const unsigned fraction = (bits & 0x7fffff) >> (23 - mantissa);
    return (bits >> 31) << (width - 1) | static_cast<unsigned>(exponent) << mantissa | fraction;
}
__device__ inline double decoded(unsigned bits, int bias, int mantissa) {
    const int exponent = static_cast<int>(bits >> mantissa & ((1u << (15 - mantissa)) - 1));
    const double fraction = static_cast<double>(bits & ((1u << mantissa) - 1)) / (1 << mantissa);
    const double size =
        exponent == 0 ? ldexp(fraction, 1 - bias) : ldexp(1 + fraction, exponent - bias);
    return (bits >> 15 & 1) != 0 ? -size : size;
}
__global__ void fill_factor(void* data, std::size_t n, unsigned factor, GemmType type) {
    PARIBUS_EACH(i, n) {
        const double x = element_of(i, factor, type.steps, type.compute == 72);
        if (type.mantissa > 0) {
            const int width = static_cast<int>(8 * type.bytes);
            const unsigned bits = encoded(static_cast<float>(x), type.bias, type.mantissa, width);
            if (width == 8) static_cast<std::uint8_t*>(data)[i] = static_cast<std::uint8_t>(bits);
            else static_cast<std::uint16_t*>(data)[i] = static_cast<std::uint16_t>(bits);
        } else if (type.bytes == 1) {
            static_cast<std::int8_t*>(data)[i] = static_cast<std::int8_t>(x);
        } else if (type.bytes == 4) {
            static_cast<float*>(data)[i] = static_cast<float>(x);
        } else {
            static_cast<double*>(data)[i] = x;
        }
    }
}
// Compares `columns` columns of the product, evenly apart, with sums in double.
__global__ void check_product(const void* product, std::size_t n, std::size_t m, std::size_t apart,
                              std::size_t k, GemmType type, unsigned* wrong) {
    PARIBUS_EACH(i, n) {
        const std::size_t row = i % m, column = i / m * apart, at = column * m + row;
        double right = 0, found = 0;
        for (std::size_t j = 0; j < k; ++j)
            right += element_of(row * k + j, 0, type.steps, type.compute == 72) *
                     element_of(column * k + j, 1, type.steps, type.compute == 72);
        if (type.result == 14)
            found = decoded(static_cast<const std::uint16_t*>(product)[at], 127, 7);
        else if (type.result == 2)
            found = decoded(static_cast<const std::uint16_t*>(product)[at], 15, 10);
        else if (type.result == 0) found = static_cast<const float*>(product)[at];
        else if (type.result == 1) found = static_cast<const double*>(product)[at];
        else found = static_cast<const std::int32_t*>(product)[at];
        if (!(fabs(found - right) <= type.share * (fabs(right) + 1))) atomicAdd(wrong, 1u);
    }
}

constexpr Option gemm_options[] = {
    {"gpus", "1", "how many, each alone", 1, 64},
    {"type",
     "bf16",
     "of the factors",
     0,
     0,
     false,
     {"bf16", "fp16", "tf32", "fp8", "double", "int8"}},
    {"size", "1024,4096,8192", "columns of both factors: multiples of 16", 16, 65536, true},
    {"rows", "0", "of the first factor: a multiple of 16, or 0 for as many as columns", 0, 65536},
    {"load-s", "10", "seconds of load before the last figure, 0 for none", 0, 600},
    {}};

struct GemmKernel {
    static constexpr Spec spec() {
        Spec spec = spec_of("gpu_gemm", "Matrix products of a GPU, by cuBLASLt.", gemm_options);
        spec.metric = "performance";
        spec.unit = "Gop/s";
        spec.sizes = nullptr;
        return spec;
    }
    static void measure(Session& session) {
        const int count = gpus(session);
        const CublasLt library(session);
        const auto& asked = session.arguments;
        const GemmType* type = gemm_types;
        while (asked.text.at("type") != type->name) ++type;
        std::vector<long> sizes = asked.numbers.at("size");
        for (const long size : sizes)
            if ((size | asked.numbers.at("rows")[0]) % 16 != 0)
                session.refuse("--size and --rows: use multiples of 16");
        std::sort(sizes.begin(), sizes.end());
        double joules = 0, work = 0;
        for (int gpu = 0; gpu < count; ++gpu) {
            Object said = about(gpu);
            said.add("cublaslt", static_cast<long>(library.version()));
            of_gpu(session, library, gpu, *type, sizes, said, joules, work);
        }
    }

private:
    // The product of one shape: column-major, the first factor transposed, as fp8 and int8 need it.
    class Product {
    public:
        Product(Session& session, const CublasLt& library, int gpu, const GemmType& type, long size)
            : m(rows(session, size)),
              n(static_cast<std::size_t>(size)),
              k(n),
              on(session, gpu),
              session_(session),
              library_(library),
              type_(type),
              first_(session, gpu, k * m * type.bytes),
              second_(session, gpu, k * n * type.bytes),
              result_(session, gpu, m * n * type.result_bytes),
              space_(session, gpu, workspace) {
            const int transposed = 1;
            say(library.create(&handle_), "no handle");
            say(library.describe(&description_, type.compute, type.scale), "no description");
            say(library.set(description_, 3, &transposed, sizeof transposed), "no transposition");
            say(library.lay_out(&of_first_, type.factors, k, m, static_cast<long>(k)), "no layout");
            say(library.lay_out(&of_second_, type.factors, k, n, static_cast<long>(k)),
                "no layout");
            say(library.lay_out(&of_result_, type.result, m, n, static_cast<long>(m)), "no layout");
            say(library.prefer(&preference_), "no preference");
            say(library.set_preference(preference_, 1, &workspace, sizeof workspace),
                "no workspace");
            int found = 0;
            say(library.choose(handle_, description_, of_first_, of_second_, of_result_, of_result_,
                               preference_, 1, &choice_, &found),
                std::string(type.name) + " is not computed on this GPU");
            session.give_up_if(found > 0 ? "" : "cuBLASLt has no algorithm for this product");
            PARIBUS_ON_GPU(fill_factor, blocks, threads, on.stream, first_.as<void>(), k * m, 0u,
                           type);
            PARIBUS_ON_GPU(fill_factor, blocks, threads, on.stream, second_.as<void>(), k * n, 1u,
                           type);
        }
        ~Product() {
            library_.forget_preference(preference_);
            for (void* one : {of_first_, of_second_, of_result_}) library_.forget_layout(one);
            library_.forget_description(description_);
            library_.destroy(handle_);
        }
        Product(const Product&) = delete;
        Product& operator=(const Product&) = delete;

        double seconds(long times) const {
            return on.seconds(times, [&] { multiply(); });
        }
        // Samples of 5 ms each, for so many seconds.
        Sampled stretch(double s) const {
            const double one = std::max(1e-7, seconds(1));
            Sampled found{std::clamp(static_cast<long>(5e-3 / one), 1L, 10000L), {}};
            for (double spent = 0; spent < s;) {
                const double all = seconds(found.batch);
                found.each_s.push_back(all / static_cast<double>(found.batch));
                spent += std::max(1e-6, all);
            }
            return found;
        }
        void check(const std::string& where) const {
            const std::size_t size = m * n * type_.result_bytes;
            // The highest byte of an element: what is damaged must not be within rounding.
            corrupt(session_, result_.as() + type_.result_bytes - 1, size);
            const std::size_t columns = std::min<std::size_t>(16, n);
            PARIBUS_CHECK(session_, on, where, columns * m, check_product, result_.as<void>(),
                          columns * m, m, n / columns, k, type_);
        }
        double operations() const {
            return 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
        }
        std::string where() const {
            Object said;
            said.add("gpu", on.gpu).add("type", std::string(type_.name));
            return said.add("m", static_cast<long>(m))
                .add("n", static_cast<long>(n))
                .add("k", static_cast<long>(k))
                .text();
        }

        const std::size_t m, n, k;
        const Stream on;

    private:
        // 32 MiB, as cuBLAS recommends for Hopper (its documentation of cublasSetWorkspace).
        static constexpr std::size_t workspace = 32u << 20;
        static std::size_t rows(Session& session, long size) {
            const long asked = session.arguments.numbers.at("rows")[0];
            return static_cast<std::size_t>(asked == 0 ? size : asked);
        }
        void say(int error, const std::string& what) const {
            CublasLt::must(session_, error, what);
        }
        void multiply() const {
            const double one_d = 1, none_d = 0;
            const float one_f = 1, none_f = 0;
            const std::int32_t one_i = 1, none_i = 0;
            const void *one = &one_f, *none = &none_f;
            if (type_.scale == 1) one = &one_d, none = &none_d;
            if (type_.scale == 10) one = &one_i, none = &none_i;
            say(library_.multiply(handle_, description_, one, first_.as<void>(), of_first_,
                                  second_.as<void>(), of_second_, none, result_.as<void>(),
                                  of_result_, result_.as<void>(), of_result_, &choice_.algorithm,
                                  space_.as<void>(), workspace, on.stream),
                "no product");
        }

        Session& session_;
        const CublasLt& library_;
        const GemmType& type_;
        const Memory first_, second_, result_, space_;
        void *handle_ = nullptr, *description_ = nullptr, *preference_ = nullptr;
        void *of_first_ = nullptr, *of_second_ = nullptr, *of_result_ = nullptr;
        CublasLt::Choice choice_{};
    };

    // Adds what the load took and did to `joules` and `work` (10^12 operations): of all GPUs so
    // far.
    static void of_gpu(Session& session, const CublasLt& library, int gpu, const GemmType& type,
                       const std::vector<long>& sizes, Object& said, double& joules, double& work) {
        const auto load_s = static_cast<double>(session.arguments.numbers.at("load-s")[0]);
        const Product largest(session, library, gpu, type, sizes.back());
        Sampled at_first{};
        if (load_s > 0) at_first = largest.stretch(0.1);
        for (const long size : sizes) {
            const Product one(session, library, gpu, type, size);
            const Sampled found = sample(session, [&](long times) { return one.seconds(times); });
            one.check(one.where());
            keep(session, one.where(), "performance", "Gop/s", found, 1e-9 * one.operations(),
                 false, said.text());
        }
        if (load_s == 0) return;
        const double scale = 1e-9 * largest.operations();
        const Energy counter(gpu);
        const double before = counter.joules();
        const Sampled load = largest.stretch(load_s);
        joules += counter.joules() - before;
        work += 1e-12 * largest.operations() * static_cast<double>(load.batch) *
                static_cast<double>(load.each_s.size());
        keep(session, largest.where(), "first", "Gop/s", at_first, scale, false, said.text());
        if (before >= 0 && joules > 0 && work > 0)
            said.raw("j_per", Object().add("Top", joules / work).text());
        keep(session, largest.where(), "sustained", "Gop/s", largest.stretch(0.5), scale, false,
             said.text());
        largest.check(largest.where());
    }
};

}  // namespace paribus::gpu
