#include <plait/model/files/mapped_file.hpp>

#include <plait/actors/error.hpp>

#include <cerrno>
#include <string>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace plait {
namespace {

[[noreturn]] void fail(errc code, std::filesystem::path const& path, std::string const& what)
{
    throw error(code, path.string() + ": " + what);
}

[[noreturn]] void fail_with(int number, std::filesystem::path const& path, std::string const& what)
{
    bool const missing = number == ENOENT || number == ENOTDIR;
    fail(missing ? errc::not_found : errc::io, path, what + " (" + std::generic_category().message(number) + ")");
}

file_identity identity_of(struct stat const& status) noexcept
{
#ifdef __APPLE__
    timespec const& modified = status.st_mtimespec;
#else
    timespec const& modified = status.st_mtim;
#endif
    return {
        .device = static_cast<std::uint64_t>(status.st_dev),
        .inode = static_cast<std::uint64_t>(status.st_ino),
        .bytes = static_cast<std::uint64_t>(status.st_size),
        .modified_ns = static_cast<std::int64_t>(modified.tv_sec) * 1'000'000'000 + modified.tv_nsec,
    };
}

/// Advises on every page that `range` touches. Rounding outwards is harmless: the mapping is read-only, so a neighbour
/// that is let go is read again when touched.
void advise(std::span<std::byte const> range, int advice) noexcept
{
    if (range.empty()) return;
    auto const page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
    auto const before = reinterpret_cast<std::uintptr_t>(range.data()) % page;
    ::madvise(const_cast<std::byte*>(range.data() - before), before + range.size(), advice);
}

} // namespace

mapped_file::mapped_file(std::filesystem::path path)
    : path_(std::move(path))
{
    // Non-blocking, so that a pipe without a writer is refused instead of waited for.
    descriptor_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor_ < 0) fail_with(errno, path_, "cannot be opened");
    try {
        struct stat status{};
        if (::fstat(descriptor_, &status) != 0) fail_with(errno, path_, "has no status");
        if (S_ISDIR(status.st_mode)) fail(errc::io, path_, "is a directory");
        if (!S_ISREG(status.st_mode)) fail(errc::io, path_, "is not a regular file");
        identity_ = identity_of(status);
        if (identity_.bytes != 0) {
            void* data = ::mmap(nullptr, identity_.bytes, PROT_READ, MAP_SHARED, descriptor_, 0);
            if (data == MAP_FAILED) fail_with(errno, path_, "cannot be mapped");
            data_ = static_cast<std::byte const*>(data);
        }
    } catch (...) {
        close();
        throw;
    }
}

mapped_file::~mapped_file()
{
    close();
}

mapped_file::mapped_file(mapped_file&& other) noexcept
    : path_(std::move(other.path_))
    , identity_(std::exchange(other.identity_, {}))
    , descriptor_(std::exchange(other.descriptor_, -1))
    , data_(std::exchange(other.data_, nullptr))
{
}

mapped_file& mapped_file::operator=(mapped_file&& other) noexcept
{
    if (this != &other) {
        close();
        path_ = std::move(other.path_);
        identity_ = std::exchange(other.identity_, {});
        descriptor_ = std::exchange(other.descriptor_, -1);
        data_ = std::exchange(other.data_, nullptr);
    }
    return *this;
}

void mapped_file::close() noexcept
{
    if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), identity_.bytes);
    if (descriptor_ >= 0) ::close(descriptor_);
    data_ = nullptr;
    descriptor_ = -1;
    identity_ = {};
}

void mapped_file::read(std::uint64_t offset, std::span<std::byte> out) const
{
    while (!out.empty()) {
        ::ssize_t const got = ::pread(descriptor_, out.data(), out.size(), static_cast<::off_t>(offset));
        if (got < 0) {
            if (errno == EINTR) continue;
            fail_with(errno, path_, "cannot be read at byte " + std::to_string(offset));
        }
        if (got == 0) fail(errc::io, path_, "ends at byte " + std::to_string(offset) + ": it was shortened while open");
        offset += static_cast<std::uint64_t>(got);
        out = out.subspan(static_cast<std::size_t>(got));
    }
}

void mapped_file::check_unchanged() const
{
    struct stat status{};
    if (::fstat(descriptor_, &status) != 0) fail_with(errno, path_, "has no status");
    if (identity_of(status) != identity_) fail(errc::io, path_, "was changed while it was open");
}

void mapped_file::release(std::span<std::byte const> range) const noexcept
{
    advise(range, MADV_DONTNEED);
}

void mapped_file::will_need(std::span<std::byte const> range) const noexcept
{
    advise(range, MADV_WILLNEED);
}

std::string read_text_file(std::filesystem::path const& path, std::uint64_t limit)
{
    mapped_file const file(path);
    if (file.size() > limit)
        fail(errc::bad_file, path,
             std::to_string(file.size()) + " bytes; at most " + std::to_string(limit) + " are read");
    std::string out(static_cast<std::size_t>(file.size()), '\0');
    file.read(0, std::as_writable_bytes(std::span(out)));
    return out;
}

} // namespace plait
