// Stands for CUDA's header of bfloat16: what native/gpu uses of it, rounded as there.
#pragma once

#include <cstdint>
#include <cstring>

struct __nv_bfloat162 {
    std::uint16_t low, high;
};

inline std::uint16_t bfloat16_of(float x) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, &x, sizeof bits);
    return static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
inline float float_of(std::uint16_t x) {
    const std::uint32_t bits = static_cast<std::uint32_t>(x) << 16;
    float result = 0;
    std::memcpy(&result, &bits, sizeof result);
    return result;
}
inline __nv_bfloat162 __float2bfloat162_rn(float x) { return {bfloat16_of(x), bfloat16_of(x)}; }
inline float __low2float(__nv_bfloat162 x) { return float_of(x.low); }
inline float __high2float(__nv_bfloat162 x) { return float_of(x.high); }
inline __nv_bfloat162 __hmul2(__nv_bfloat162 x, __nv_bfloat162 y) {
    return {bfloat16_of(float_of(x.low) * float_of(y.low)),
            bfloat16_of(float_of(x.high) * float_of(y.high))};
}
inline __nv_bfloat162 __hfma2(__nv_bfloat162 x, __nv_bfloat162 y, __nv_bfloat162 z) {
    return {bfloat16_of(float_of(x.low) * float_of(y.low) + float_of(z.low)),
            bfloat16_of(float_of(x.high) * float_of(y.high) + float_of(z.high))};
}
