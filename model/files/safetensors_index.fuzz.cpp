#include <plait/actors/error.hpp>
#include <plait/model/files/safetensors_index.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size)
{
    try {
        auto const index = plait::safetensors_index::parse({reinterpret_cast<char const*>(data), size});
        for (auto const& shard : index.shards)
            if (shard.find('/') != shard.npos || shard.find("..") == 0) __builtin_trap();
        for (auto const& [name, shard] : index.shard_of)
            if (shard >= index.shards.size()) __builtin_trap();
    } catch (plait::error const&) {
        return 0;
    }
    return 0;
}
