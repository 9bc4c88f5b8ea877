// Stands for CUDA's header of half precision: what native/gpu uses of it, rounded as there.
#pragma once

struct __half2 {
    _Float16 low, high;
};

inline __half2 __float2half2_rn(float x) {
    return {static_cast<_Float16>(x), static_cast<_Float16>(x)};
}
inline float __low2float(__half2 x) { return static_cast<float>(x.low); }
inline float __high2float(__half2 x) { return static_cast<float>(x.high); }
inline __half2 __hmul2(__half2 x, __half2 y) {
    return {static_cast<_Float16>(x.low * y.low), static_cast<_Float16>(x.high * y.high)};
}
inline __half2 __hfma2(__half2 x, __half2 y, __half2 z) {
    return {static_cast<_Float16>(static_cast<float>(x.low) * static_cast<float>(y.low) +
                                  static_cast<float>(z.low)),
            static_cast<_Float16>(static_cast<float>(x.high) * static_cast<float>(y.high) +
                                  static_cast<float>(z.high))};
}
