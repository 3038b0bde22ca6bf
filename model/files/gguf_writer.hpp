#pragma once

#include <plait/model/files/ggml_type.hpp>
#include <plait/model/files/gguf_metadata.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace plait {

/// A tensor of a GGUF file that is to be written.
struct gguf_tensor {
    std::string name;
    std::vector<std::int64_t> dims; ///< columns first
    ggml_type type = ggml_type::f32;

    /// Of its data.
    std::uint64_t bytes() const noexcept;
};

/// Writes a GGUF file, version 3, whose tensors arrive in pieces: no more than a piece is ever in memory. The file has
/// its name once it is whole; until then it is called as that and ".partial", and goes away with the writer.
/// Errors of all members: errc::io, where the system refuses.
class gguf_writer {
public:
    /// Writes everything but the tensors' data. An existing file at `path` stays until finish(). Errors, naming the
    /// tensor: errc::invalid_argument where a name is empty, longer than 63 bytes or not the first of its kind, the
    /// dimensions are none, more than four or below 1, or a row is not made of whole blocks.
    gguf_writer(std::filesystem::path path, gguf_metadata const& keys, std::vector<gguf_tensor> tensors);
    ~gguf_writer();
    gguf_writer(gguf_writer const&) = delete;
    gguf_writer& operator=(gguf_writer const&) = delete;

    /// Writes the next bytes of the tensors' data, in the order of the table; a piece may end anywhere inside a tensor,
    /// but not reach into the next. Errors: errc::invalid_argument where it does, or all tensors are written.
    void write(std::span<std::byte const> piece);

    /// What the file is called until then. What was written can be read there.
    std::filesystem::path const& partial() const noexcept { return partial_; }

    /// Gives the file its name. Errors: errc::invalid_argument where a tensor is not whole.
    void finish();

private:
    void put(std::span<std::byte const> bytes);
    void pad();

    std::filesystem::path path_, partial_;
    std::vector<gguf_tensor> tensors_;
    std::size_t next_ = 0;       ///< the tensor that is being written
    std::uint64_t written_ = 0;  ///< of its bytes
    std::uint64_t position_ = 0; ///< in the file
    int descriptor_ = -1;
};

} // namespace plait
