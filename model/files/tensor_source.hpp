#pragma once

#include <plait/model/files/ggml_type.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace plait {

/// One tensor of a file or of a folder of files.
struct stored_tensor {
    std::string_view name;
    ggml_type type = ggml_type::f32;
    unsigned rank = 1;                            ///< dimensions that the file states, 1 to 4 (see safetensors_file)
    std::array<std::int64_t, 4> dims{1, 1, 1, 1}; ///< columns first (ggml's ne0); those past `rank` are 1
    std::uint64_t offset = 0;                     ///< of the first byte, from the start of its file
    std::uint64_t bytes = 0;
    std::uint32_t file = 0; ///< which of the source's files it is in
    /// Empty, or what the file calls a type that ggml does not have, such as "F8_E4M3"; `type` is then an integer type
    /// of the same size, and nothing can be computed with the tensor.
    std::string_view foreign_type{};

    std::int64_t cols() const noexcept { return dims[0]; }
    std::int64_t rows() const noexcept { return dims[1] * dims[2] * dims[3]; }
};

/// "[576, 1536]": the stated dimensions, columns first.
std::string shape(stored_tensor const& tensor);
/// "Q4_1", or what the file calls a type that ggml does not have.
std::string_view type_name(stored_tensor const& tensor) noexcept;

/// Where weights are read from, whatever the format: tensors by name, row-major, each in whole blocks of its type.
/// Every tensor has been checked to lie inside its file, apart from all others.
class tensor_source {
public:
    virtual ~tensor_source() = default;

    /// Names the file or the folder in errors.
    virtual std::string const& source() const noexcept = 0;
    /// All tensors, in the order of the files. Their names live as long as the source does, moves included.
    virtual std::span<stored_tensor const> tensors() const noexcept = 0;
    /// The tensor called `name`, or null.
    virtual stored_tensor const* find_tensor(std::string_view name) const noexcept = 0;
    /// Copies bytes of a tensor of this source, from byte `offset` of it on, without a mapping: a file that is cut
    /// short meanwhile is an error here, not a signal. Errors: errc::io.
    virtual void read(stored_tensor const& tensor, std::uint64_t offset, std::span<std::byte> out) const = 0;
    /// Throws errc::io when a file was written to or shortened after it was opened. Call it after loading.
    virtual void check_unchanged() const = 0;
    /// A number that differs between models: hashes the header and samples (start, middle, end) of every tensor.
    /// Not cryptographic: it tells models apart, it does not authenticate them. Errors: errc::io.
    virtual std::uint64_t fingerprint() const = 0;

    /// The tensor called `name`. Errors: errc::bad_file where there is none.
    stored_tensor const& tensor(std::string_view name) const;
    /// The format in which plait computes with `tensor`. Errors: errc::unsupported, naming the tensor, its type and
    /// the types that can be loaded.
    weight_format format(stored_tensor const& tensor) const;

protected:
    /// Throws errc::invalid_argument where `bytes` bytes from byte `offset` on are not inside `tensor`.
    void check_range(stored_tensor const& tensor, std::uint64_t offset, std::uint64_t bytes) const;

    tensor_source() = default;
    tensor_source(tensor_source const&) = default;
    tensor_source(tensor_source&&) = default;
    tensor_source& operator=(tensor_source const&) = default;
    tensor_source& operator=(tensor_source&&) = default;
};

} // namespace plait
