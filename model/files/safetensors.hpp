#pragma once

#include <plait/model/files/mapped_file.hpp>
#include <plait/model/files/tensor_source.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace plait {

/// A safetensors file: a table of tensors in JSON, and their bytes (the format is Hugging Face's, docs/FORMAT in its
/// repository). Everything is checked when the file is opened: the header has at most 100 MB and 131,072 tensors, each
/// tensor's type and shape make up its bytes, and the tensors cover the data without holes, overlaps or a rest.
/// Shapes are turned: `dims` are columns first. A scalar has one dimension of 1; of a tensor with more than four
/// dimensions the leading ones are taken as one. Types that ggml does not have (U8, BOOL, F8_E4M3, ...) are listed as
/// stored_tensor::foreign_type. Move-only. Every error's context starts with the file and names the field.
class safetensors_file final : public tensor_source {
public:
    /// Errors: errc::not_found, errc::io (directory, unreadable), errc::bad_file (not safetensors, malformed or
    /// truncated), errc::unsupported (a type of no whole number of bytes, or an unknown one; a tensor without
    /// elements).
    static safetensors_file open(std::filesystem::path const& path);

    /// Reads a file that is in memory already. `image` must outlive the result. `source` names it in errors.
    static safetensors_file parse(std::span<std::byte const> image, std::string source = "image");

    std::string const& source() const noexcept override { return source_; }
    /// In the order of their bytes.
    std::span<stored_tensor const> tensors() const noexcept override { return tensors_; }
    stored_tensor const* find_tensor(std::string_view name) const noexcept override;
    void read(stored_tensor const& tensor, std::uint64_t offset, std::span<std::byte> out) const override;
    void check_unchanged() const override;
    std::uint64_t fingerprint() const override;
    /// The part of the fingerprint that needs no reading.
    std::uint64_t header_hash() const noexcept { return header_hash_; }

private:
    class header;

    safetensors_file() = default;
    void read_header(std::string_view text, std::uint64_t data_bytes);

    std::string source_;
    mapped_file file_;
    std::span<std::byte const> image_; // of what parse() was given
    std::uint64_t header_hash_ = 0;
    std::vector<std::string> names_;
    std::vector<stored_tensor> tensors_;
    std::vector<std::uint32_t> by_name_;
};

} // namespace plait
