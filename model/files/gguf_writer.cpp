#include <plait/model/files/gguf_writer.hpp>

#include <plait/actors/error.hpp>
#include <plait/model/text/quote.hpp>

#include <array>
#include <cerrno>
#include <cstring>
#include <limits>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

namespace plait {
namespace {

constexpr std::uint32_t version = 3;
constexpr std::uint64_t alignment = 32;           // the format's default, which needs no key
constexpr std::size_t max_tensor_name_bytes = 63; // llama.cpp keeps 64 with the NUL

template<class T>
void append(std::vector<std::byte>& out, T value)
{
    auto const at = out.size();
    out.resize(at + sizeof value);
    std::memcpy(out.data() + at, &value, sizeof value);
}

std::uint64_t aligned(std::uint64_t at)
{
    return (at + alignment - 1) / alignment * alignment;
}

void check(std::filesystem::path const& path, std::span<gguf_tensor const> tensors)
{
    std::set<std::string_view> names;
    for (gguf_tensor const& tensor : tensors) {
        auto const fail = [&](std::string const& what) {
            throw error(errc::invalid_argument, path.string() + ": tensor " + quote(tensor.name) + ": " + what);
        };
        if (tensor.name.empty()) fail("has no name");
        if (tensor.name.size() > max_tensor_name_bytes)
            fail("its name is longer than " + std::to_string(max_tensor_name_bytes) + " bytes");
        if (!names.insert(tensor.name).second) fail("is there twice");
        if (tensor.dims.empty() || tensor.dims.size() > 4) fail("has not 1 to 4 dimensions");
        std::int64_t elements = 1;
        for (std::int64_t const dim : tensor.dims) {
            if (dim < 1) fail("a dimension is " + std::to_string(dim));
            // 8 bytes is what the widest element takes.
            if (elements > std::numeric_limits<std::int64_t>::max() / 8 / dim) fail("is too large");
            elements *= dim;
        }
        auto const& how = layout(tensor.type);
        if (how.block == 0 || tensor.dims[0] % how.block != 0)
            fail("a row of " + std::to_string(tensor.dims[0]) + " columns is not made of whole blocks of " +
                 std::string(how.name));
    }
}

} // namespace

std::uint64_t gguf_tensor::bytes() const noexcept
{
    auto const& how = layout(type);
    std::uint64_t elements = 1;
    for (std::int64_t const dim : dims)
        elements *= static_cast<std::uint64_t>(dim);
    return elements / how.block * how.bytes;
}

gguf_writer::gguf_writer(std::filesystem::path path, gguf_metadata const& keys, std::vector<gguf_tensor> tensors)
    : path_(std::move(path))
    , partial_(path_.string() + ".partial")
    , tensors_(std::move(tensors))
{
    check(path_, tensors_);
    std::vector<std::byte> header;
    for (char const c : std::string_view("GGUF"))
        append(header, c);
    append(header, version);
    append(header, std::uint64_t{tensors_.size()});
    append(header, std::uint64_t{keys.entries.size()});
    keys.append_to(header);
    std::uint64_t offset = 0;
    for (gguf_tensor const& tensor : tensors_) {
        append_gguf_string(header, tensor.name);
        append(header, static_cast<std::uint32_t>(tensor.dims.size()));
        for (std::int64_t const dim : tensor.dims)
            append(header, dim);
        append(header, static_cast<std::uint32_t>(tensor.type));
        append(header, offset);
        offset = aligned(offset + tensor.bytes());
    }
    descriptor_ = ::open(partial_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (descriptor_ < 0)
        throw error(errc::io,
                    partial_.string() + ": cannot be written (" + std::generic_category().message(errno) + ")");
    try {
        put(header);
        pad();
    } catch (...) {
        ::close(descriptor_);
        ::unlink(partial_.c_str());
        throw;
    }
}

gguf_writer::~gguf_writer()
{
    if (descriptor_ < 0) return;
    ::close(descriptor_);
    ::unlink(partial_.c_str());
}

void gguf_writer::put(std::span<std::byte const> bytes)
{
    while (!bytes.empty()) {
        ::ssize_t const wrote = ::write(descriptor_, bytes.data(), bytes.size());
        if (wrote < 0 && errno == EINTR) continue;
        if (wrote <= 0)
            throw error(errc::io, partial_.string() + ": cannot be written at byte " + std::to_string(position_) +
                                      " (" + std::generic_category().message(errno) + ")");
        position_ += static_cast<std::uint64_t>(wrote);
        bytes = bytes.subspan(static_cast<std::size_t>(wrote));
    }
}

void gguf_writer::pad()
{
    constexpr std::array<std::byte, alignment> zeros{};
    put(std::span(zeros).first(static_cast<std::size_t>(aligned(position_) - position_)));
}

void gguf_writer::write(std::span<std::byte const> piece)
{
    if (piece.empty()) return;
    if (next_ == tensors_.size())
        throw error(errc::invalid_argument, path_.string() + ": more data than its tensors take");
    gguf_tensor const& tensor = tensors_[next_];
    std::uint64_t const left = tensor.bytes() - written_;
    if (piece.size() > left)
        throw error(errc::invalid_argument, path_.string() + ": tensor " + quote(tensor.name) + ": " +
                                                std::to_string(piece.size()) + " bytes where " + std::to_string(left) +
                                                " are left");
    put(piece);
    written_ += piece.size();
    if (piece.size() < left) return;
    pad();
    written_ = 0;
    ++next_;
}

void gguf_writer::finish()
{
    if (next_ != tensors_.size())
        throw error(errc::invalid_argument,
                    path_.string() + ": tensor " + quote(tensors_[next_].name) + ": is not whole");
    if (descriptor_ < 0) throw error(errc::invalid_argument, path_.string() + ": is finished already");
    bool const closed = ::close(std::exchange(descriptor_, -1)) == 0;
    if (!closed || ::rename(partial_.c_str(), path_.c_str()) != 0) {
        auto const why = std::generic_category().message(errno);
        ::unlink(partial_.c_str());
        throw error(errc::io, path_.string() + ": cannot be written (" + why + ")");
    }
}

} // namespace plait
