#pragma once

#include <plait/model/files/mapped_file.hpp>
#include <plait/model/files/tensor_source.hpp>

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

/// A GGUF file, version 2 or 3: metadata and a table of tensors (the format is ggml's docs/gguf.md).
/// Everything is checked when the file is opened: afterwards every entry is well-formed and every tensor lies inside
/// the file, aligned, in whole blocks, apart from all others. Opening takes time linear in the size of the header and
/// memory of the same order, whatever the header claims. Names, strings and entries are views into the header, which
/// this object owns (opened) or borrows (parsed); they live as long as it does, moves included. Move-only.
/// Every error's context starts with the file and names the field.
class gguf_file final : public tensor_source {
public:
    /// Opens a file, or all parts of a model that was split: `path` is then the first, "<name>-00001-of-<count>.gguf",
    /// which has the metadata; the others lie beside it. Errors: errc::not_found, errc::io (directory, unreadable),
    /// errc::bad_file (not GGUF, malformed or truncated; parts that do not belong together), errc::unsupported (version
    /// 1 or above 3, big-endian).
    static gguf_file open(std::filesystem::path const& path);

    /// Reads a file that is in memory already. `image` must outlive the result. `source` names it in errors.
    static gguf_file parse(std::span<std::byte const> image, std::string source = "image");

    std::string const& source() const noexcept override { return source_; }
    std::uint32_t version() const noexcept { return version_; }
    std::uint64_t size() const noexcept { return size_; } ///< in bytes, of all parts

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

    std::span<stored_tensor const> tensors() const noexcept override { return tensors_; }
    stored_tensor const* find_tensor(std::string_view name) const noexcept override;

    /// The bytes of a tensor of this file, in the mapping (see mapped_file about files that shrink).
    std::span<std::byte const> data(stored_tensor const& tensor) const noexcept;
    void read(stored_tensor const& tensor, std::uint64_t offset, std::span<std::byte> out) const override;
    /// Lets the mapped pages of a tensor go once its values have been copied or repacked.
    void release(stored_tensor const& tensor) const noexcept;
    /// Asks the system to read a tensor ahead.
    void will_need(stored_tensor const& tensor) const noexcept;
    void check_unchanged() const override;
    std::uint64_t fingerprint() const override;

private:
    class parser;
    struct part {
        mapped_file file;
        std::unique_ptr<std::byte[]> owned; // the header of an opened file: views must survive a file that shrinks
        std::span<std::byte const> image;   // the file in memory: the mapping, or what parse() was given
        std::span<std::byte const> header;
    };

    gguf_file() = default;
    static gguf_file open_one(std::filesystem::path const& path);
    void add_parts(std::filesystem::path const& path);
    void index_tensors();
    gguf_entry const& require(std::string_view key) const;

    std::string source_;
    std::vector<part> parts_; // those of tensors_[i].file
    std::uint32_t version_ = 0;
    std::uint64_t size_ = 0;
    std::vector<gguf_entry> entries_;
    std::vector<stored_tensor> tensors_;
    std::vector<std::uint32_t> entries_by_key_;
    std::vector<std::uint32_t> tensors_by_name_;
};

} // namespace plait
