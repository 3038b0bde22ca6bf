#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace plait::test {

/// A safetensors file in parts, to be written well or badly.
class safetensors_writer {
public:
    struct tensor {
        std::string name;
        std::string dtype;
        std::vector<std::uint64_t> shape; ///< rows first, as the format has it
        std::vector<std::byte> data;
        std::optional<std::uint64_t> begin, end; ///< instead of the right ones
    };

    std::vector<tensor> tensors;
    std::vector<std::byte> rest; ///< after the last tensor

    tensor& add(std::string_view name, std::string_view dtype, std::vector<std::uint64_t> shape,
                std::vector<std::byte> data);

    std::string header() const;
    std::vector<std::byte> bytes() const { return bytes(header()); }
    /// With another header, and another length of it.
    std::vector<std::byte> bytes(std::string_view header, std::optional<std::uint64_t> length = {}) const;
};

} // namespace plait::test
