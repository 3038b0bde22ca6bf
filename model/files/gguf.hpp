#pragma once

#include <plait/model/files/ggml_type.hpp>
#include <plait/model/files/mapped_file.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace plait {

/// The value types of GGUF metadata, with the numbers that the file uses.
enum class gguf_type : std::uint32_t {
    u8 = 0,
    i8 = 1,
    u16 = 2,
    i16 = 3,
    u32 = 4,
    i32 = 5,
    f32 = 6,
    boolean = 7,
    string = 8,
    array = 9,
    u64 = 10,
    i64 = 11,
    f64 = 12,
};

std::string_view name(gguf_type type) noexcept;

/// One metadata entry, as it lies in the file.
struct gguf_entry {
    std::string_view key;
    gguf_type type = gguf_type::u8;
    gguf_type element = gguf_type::u8;  ///< of an array: the type of its elements; otherwise equal to `type`
    std::uint64_t count = 1;            ///< elements of an array, otherwise 1
    std::span<std::byte const> payload; ///< the value or the elements, little-endian, not aligned
};

/// One line of the tensor table.
struct gguf_tensor {
    std::string_view name;
    ggml_type type = ggml_type::f32;
    unsigned rank = 1;                            ///< dimensions that the file states, 1 to 4
    std::array<std::int64_t, 4> dims{1, 1, 1, 1}; ///< columns first (ggml's ne0); those past `rank` are 1
    std::uint64_t offset = 0;                     ///< of the first byte, from the start of the file
    std::uint64_t bytes = 0;

    std::int64_t cols() const noexcept { return dims[0]; }
    std::int64_t rows() const noexcept { return dims[1] * dims[2] * dims[3]; }
};

/// "[576, 1536]": the stated dimensions, columns first.
std::string shape(gguf_tensor const& tensor);

/// A GGUF file, version 2 or 3: metadata and a table of tensors (the format is ggml's docs/gguf.md).
/// Everything is checked when the file is opened: afterwards every entry is well-formed and every tensor lies inside
/// the file, aligned, in whole blocks, apart from all others. Opening takes time linear in the size of the header and
/// memory of the same order, whatever the header claims. Names, strings and entries are views into the header, which
/// this object owns (opened) or borrows (parsed); they live as long as it does, moves included. Move-only.
/// Every error's context starts with the file and names the field.
class gguf_file {
public:
    /// Opens a file. Errors: errc::not_found, errc::io (directory, unreadable), errc::bad_file (not GGUF, malformed or
    /// truncated), errc::unsupported (version 1 or above 3, big-endian).
    static gguf_file open(std::filesystem::path const& path);

    /// Reads a file that is in memory already. `image` must outlive the result. `source` names it in errors.
    static gguf_file parse(std::span<std::byte const> image, std::string source = "image");

    std::string const& source() const noexcept { return source_; }
    std::uint32_t version() const noexcept { return version_; }
    std::uint64_t size() const noexcept { return size_; }

    /// All metadata, in the order of the file.
    std::span<gguf_entry const> metadata() const noexcept { return entries_; }
    /// The entry of `key`, or null.
    gguf_entry const* find_entry(std::string_view key) const noexcept;
    bool has(std::string_view key) const noexcept { return find_entry(key) != nullptr; }

    /// The value of `key`. Integers are taken from any integer type, and floats from F32 and F64, where the value fits:
    /// writers differ. Errors: errc::bad_file where the key is missing, of another kind, or out of range.
    std::uint32_t u32(std::string_view key) const;
    std::uint64_t u64(std::string_view key) const;
    float f32(std::string_view key) const;
    bool boolean(std::string_view key) const;
    std::string_view string(std::string_view key) const;
    std::vector<std::int32_t> i32s(std::string_view key) const;
    std::vector<float> f32s(std::string_view key) const;
    std::vector<std::string_view> strings(std::string_view key) const;

    /// The same, or `fallback` where the key is absent.
    std::uint32_t u32(std::string_view key, std::uint32_t fallback) const;
    float f32(std::string_view key, float fallback) const;
    bool boolean(std::string_view key, bool fallback) const;
    std::string_view string(std::string_view key, std::string_view fallback) const;

    /// The tensor table, in the order of the file.
    std::span<gguf_tensor const> tensors() const noexcept { return tensors_; }
    /// The tensor called `name`, or null.
    gguf_tensor const* find_tensor(std::string_view name) const noexcept;
    /// The tensor called `name`. Errors: errc::bad_file where there is none.
    gguf_tensor const& tensor(std::string_view name) const;

    /// The bytes of a tensor of this file, in the mapping (see mapped_file about files that shrink).
    std::span<std::byte const> data(gguf_tensor const& tensor) const noexcept;
    /// Copies bytes of a tensor, from byte `offset` of it on, without the mapping. Errors: errc::io.
    void read(gguf_tensor const& tensor, std::uint64_t offset, std::span<std::byte> out) const;
    /// Lets the mapped pages of a tensor go once its values have been copied or repacked.
    void release(gguf_tensor const& tensor) const noexcept;
    /// Asks the system to read a tensor ahead.
    void will_need(gguf_tensor const& tensor) const noexcept;
    /// Throws errc::io when the file was written to or shortened after it was opened. Call it after loading.
    void check_unchanged() const;

    /// The format in which plait computes with `tensor`. Errors: errc::unsupported, naming the tensor, its type and
    /// the types that can be loaded.
    weight_format format(gguf_tensor const& tensor) const;

    /// A number that differs between models: hashes the header and samples (start, middle, end) of every tensor.
    /// Not cryptographic: it tells models apart, it does not authenticate them. Errors: errc::io.
    std::uint64_t fingerprint() const;

private:
    class parser;

    gguf_file() = default;
    gguf_entry const& require(std::string_view key) const;

    std::string source_;
    mapped_file file_;
    std::unique_ptr<std::byte[]> owned_; // the header of an opened file: views must survive a file that shrinks
    std::span<std::byte const> image_;   // the file in memory: the mapping, or what parse() was given
    std::span<std::byte const> header_;
    std::uint32_t version_ = 0;
    std::uint64_t size_ = 0;
    std::vector<gguf_entry> entries_;
    std::vector<gguf_tensor> tensors_;
    std::vector<std::uint32_t> entries_by_key_;
    std::vector<std::uint32_t> tensors_by_name_;
};

} // namespace plait
