#pragma once

#include <plait/model/files/ggml_type.hpp>
#include <plait/model/files/gguf_metadata.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace plait::test {

/// Appends the little-endian bytes of `value`.
template<class T>
void append(std::vector<std::byte>& out, T value)
{
    static_assert(std::is_trivially_copyable_v<T>);
    auto const at = out.size(); // not insert(): g++ 12 warns of its own code
    out.resize(at + sizeof value);
    std::memcpy(out.data() + at, &value, sizeof value);
}

/// Bytes of the encoded form of `count` values.
std::uint64_t encoded_bytes(ggml_type type, std::uint64_t count);

/// `values` in F32, F16, BF16, Q4_0, Q4_1 or Q8_0, as ggml's reference quantisers write them, or in Q4_K or Q6_K,
/// quantised more plainly; a multiple of the type's block.
std::vector<std::byte> encode(ggml_type type, std::span<float const> values);

/// A GGUF file in parts, to be written well or, for the tests of a reader, badly: every number can be a lie.
class gguf_writer : public gguf_metadata {
public:
    struct tensor {
        std::string name;
        std::vector<std::uint64_t> dims; ///< columns first
        std::uint32_t type = 0;
        std::vector<std::byte> data;
        std::optional<std::uint64_t> offset; ///< instead of the right one
        std::optional<std::uint32_t> rank;   ///< instead of dims.size()
    };

    std::string magic = "GGUF";
    std::uint32_t version = 3;
    std::uint64_t alignment = 32; ///< that the data is laid out with; the key general.alignment is the caller's
    std::optional<std::uint64_t> tensor_count;
    std::optional<std::uint64_t> entry_count;
    std::vector<tensor> tensors;

    /// Adds a tensor with `data`, or with zeros of the size that its type and dimensions need.
    tensor& add(std::string_view name, std::vector<std::uint64_t> dims, ggml_type type,
                std::vector<std::byte> data = {});
    /// The tensor called `name`; it must exist.
    tensor& at(std::string_view name);
    void erase_tensor(std::string_view name);

    /// The file.
    std::vector<std::byte> bytes() const;
};

} // namespace plait::test
