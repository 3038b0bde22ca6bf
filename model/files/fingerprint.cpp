#include <plait/model/files/fingerprint.hpp>

#include <algorithm>
#include <array>
#include <cstring>

namespace plait {

// Source: the finaliser and constants of MurmurHash64A (Appleby).
std::uint64_t mix(std::uint64_t hash, std::span<std::byte const> data) noexcept
{
    constexpr std::uint64_t m = 0xc6a4a7935bd1e995;
    auto const word = [&](std::uint64_t k) {
        k *= m;
        k ^= k >> 47;
        k *= m;
        hash = (hash ^ k) * m;
    };
    word(data.size());
    std::size_t i = 0;
    for (; i + 8 <= data.size(); i += 8) {
        std::uint64_t eight = 0;
        std::memcpy(&eight, data.data() + i, sizeof eight);
        word(eight);
    }
    std::uint64_t tail = 0;
    for (std::size_t shift = 0; i < data.size(); ++i, shift += 8)
        tail |= std::to_integer<std::uint64_t>(data[i]) << shift;
    word(tail);
    hash ^= hash >> 47;
    hash *= m;
    return hash ^ (hash >> 47);
}

std::uint64_t mix_samples(std::uint64_t hash, tensor_source const& source)
{
    constexpr std::uint64_t sample = 256;
    std::array<std::byte, sample> bytes{};
    for (stored_tensor const& tensor : source.tensors()) {
        std::uint64_t const length = std::min(sample, tensor.bytes);
        std::span<std::byte> const out = std::span(bytes).first(static_cast<std::size_t>(length));
        std::uint64_t const last = tensor.bytes - length;
        for (std::uint64_t const offset : {std::uint64_t{0}, last / 2, last}) {
            source.read(tensor, offset, out);
            hash = mix(hash, out);
            if (last == 0) break;
        }
    }
    return hash;
}

} // namespace plait
