#include <plait/kernels/host/isa.hpp>

namespace plait::host {

namespace {

constexpr isa all[] = {isa::scalar, isa::avx2, isa::avx512};

std::size_t detect() noexcept
{
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") || !__builtin_cpu_supports("f16c") ||
        !__builtin_cpu_supports("bmi2"))
        return 1;
    if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw") ||
        !__builtin_cpu_supports("avx512dq") || !__builtin_cpu_supports("avx512vl") ||
        !__builtin_cpu_supports("avx512vnni"))
        return 2;
    return 3;
#else
    return 1;
#endif
}

} // namespace

std::span<isa const> available_isas() noexcept
{
    static std::size_t const count = detect();
    return {all, count};
}

isa best_isa() noexcept
{
    return available_isas().back();
}

std::string_view name(isa set) noexcept
{
    switch (set) {
    case isa::scalar:
        return "scalar";
    case isa::avx2:
        return "avx2";
    case isa::avx512:
        return "avx512";
    }
    return "unknown";
}

} // namespace plait::host
