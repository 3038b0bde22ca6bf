#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

namespace plait {

/// What makes an open file the one that was opened: a change of any member means that its bytes may have changed.
struct file_identity {
    std::uint64_t device = 0;
    std::uint64_t inode = 0;
    std::uint64_t bytes = 0;
    std::int64_t modified_ns = 0;

    bool operator==(file_identity const&) const = default;
};

/// A regular file opened for reading and mapped into memory, read-only. Move-only; closes and unmaps in its destructor.
/// The mapping is for speed: if another process shortens the file, touching a lost page raises SIGBUS. Where that must
/// not end the process, use `read`, which turns a short file into an error.
class mapped_file {
public:
    mapped_file() noexcept = default;

    /// Opens and maps `path`. Errors: errc::not_found where there is no file; errc::io for a directory, a device, a
    /// pipe, a file that may not be read, or a mapping that the system refuses.
    explicit mapped_file(std::filesystem::path path);
    ~mapped_file();
    mapped_file(mapped_file&& other) noexcept;
    mapped_file& operator=(mapped_file&& other) noexcept;

    std::filesystem::path const& path() const noexcept { return path_; }
    std::uint64_t size() const noexcept { return identity_.bytes; }
    file_identity const& identity() const noexcept { return identity_; }

    /// The whole file. Valid while this object lives.
    std::span<std::byte const> bytes() const noexcept { return {data_, static_cast<std::size_t>(identity_.bytes)}; }

    /// Fills `out` from byte `offset` on. Errors: errc::io where the file ends early or cannot be read.
    void read(std::uint64_t offset, std::span<std::byte> out) const;

    /// Throws errc::io when the file was written to or shortened after it was opened.
    void check_unchanged() const;

    /// Lets the resident pages of `range`, a part of bytes(), go: they no longer count as this process's memory and are
    /// read again if touched.
    void release(std::span<std::byte const> range) const noexcept;

    /// Asks the system to read `range`, a part of bytes(), ahead.
    void will_need(std::span<std::byte const> range) const noexcept;

private:
    void close() noexcept;

    std::filesystem::path path_;
    file_identity identity_;
    int descriptor_ = -1;
    std::byte const* data_ = nullptr;
};

/// All of a small file. Errors: as mapped_file; errc::bad_file where it has more than `limit` bytes.
std::string read_text_file(std::filesystem::path const& path, std::uint64_t limit);

} // namespace plait
