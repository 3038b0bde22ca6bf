#pragma once

#include <cstddef>
#include <span>
#include <utility>

#include <plait/streams/device.hpp>
#include <plait/streams/ticket_set.hpp>

namespace plait {

/// Device memory, owned. Destroying a buffer that operations still use is safe: the memory goes back to the device when
/// the last ticket given to used_by() is over, never earlier.
class buffer {
public:
    buffer() = default;

    /// `bytes` of zeroed memory of `where`. Throws error(errc::out_of_memory).
    buffer(device& where, std::size_t bytes)
        : device_(&where)
        , data_(where.allocate(bytes))
        , bytes_(bytes)
    {
    }

    buffer(buffer&& other) noexcept
        : device_(std::exchange(other.device_, nullptr))
        , data_(std::exchange(other.data_, nullptr))
        , bytes_(std::exchange(other.bytes_, 0))
        , uses_(std::exchange(other.uses_, {}))
    {
    }
    buffer& operator=(buffer&& other) noexcept
    {
        buffer old(std::move(*this));
        device_ = std::exchange(other.device_, nullptr);
        data_ = std::exchange(other.data_, nullptr);
        bytes_ = std::exchange(other.bytes_, 0);
        uses_ = std::exchange(other.uses_, {});
        return *this;
    }
    ~buffer()
    {
        if (data_ != nullptr) device_->retire(data_, bytes_, uses_.tickets());
    }

    std::byte* data() const noexcept { return data_; }
    std::size_t size() const noexcept { return bytes_; }
    explicit operator bool() const noexcept { return data_ != nullptr; }

    /// The operation of `t` reads or writes this memory. Only the newest ticket of each stream is kept: it covers the
    /// earlier ones. Throws error(errc::invalid_argument) beyond one stream for each role.
    void used_by(ticket t) { uses_.add(t); }

private:
    device* device_ = nullptr;
    std::byte* data_ = nullptr;
    std::size_t bytes_ = 0;
    ticket_set uses_;
};

} // namespace plait
