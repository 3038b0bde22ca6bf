#pragma once

#include <plait/streams/share.hpp>

#include <cstdint>
#include <cstring>
#include <new>
#include <random>
#include <span>
#include <vector>

/// What the tests of the host kernels share: aligned memory, workers, and random numbers that repeat.
namespace plait::test {

template<class T>
struct aligned_allocator {
    using value_type = T;
    aligned_allocator() = default;
    template<class U>
    aligned_allocator(aligned_allocator<U> const&) noexcept
    {
    }
    T* allocate(std::size_t n) { return static_cast<T*>(::operator new(n * sizeof(T), std::align_val_t{64})); }
    void deallocate(T* p, std::size_t) noexcept { ::operator delete(p, std::align_val_t{64}); }
    bool operator==(aligned_allocator const&) const noexcept { return true; }
};

/// A vector that starts on a cache line.
template<class T>
using buffer = std::vector<T, aligned_allocator<T>>;

template<class T>
bool same_bits(buffer<T> const& a, buffer<T> const& b)
{
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

/// Runs an operation as `workers` workers would, one after the other: they never wait for each other inside.
template<class Op, class Args>
void run_all(Op op, Args const& args, unsigned workers = 1)
{
    // What an operation finds in its scratch must not matter: NaN at first, then what others left.
    static buffer<std::byte> scratch(1 << 20, std::byte{0xff});
    for (unsigned i = 0; i < workers; ++i)
        op(args, share{i, workers, scratch});
}

/// Normally distributed numbers.
inline buffer<float> random_floats(std::size_t count, unsigned seed, float spread = 1)
{
    std::mt19937 engine(seed);
    std::normal_distribution<float> distribution(0, spread);
    buffer<float> numbers(count);
    for (auto& number : numbers)
        number = distribution(engine);
    return numbers;
}

} // namespace plait::test
