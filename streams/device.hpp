#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <plait/streams/stream_role.hpp>
#include <plait/streams/ticket.hpp>

namespace plait {

class event_loop;
class stream;
class trace_part;

/// What carries out the operations of a stream.
enum class device_kind : std::uint8_t { host, cuda, simulated };

/// A device: its memory and its streams. Belongs to one gpu actor; except for allocate() and deallocate(), which any
/// thread may call, only that actor's thread touches it.
class device {
public:
    device() = default;
    device(device const&) = delete;
    device& operator=(device const&) = delete;
    virtual ~device() = default;

    virtual device_kind kind() const noexcept = 0;

    /// For people: the processor's or the card's name and how much of it is used.
    virtual std::string description() const = 0;

    /// The stream of a role; lives as long as the device.
    virtual stream& stream_of(stream_role role) noexcept = 0;

    /// `bytes` of zeroed device memory, aligned to 64 bytes at least. Throws error(errc::out_of_memory).
    virtual std::byte* allocate(std::size_t bytes) = 0;
    virtual void deallocate(std::byte* memory, std::size_t bytes) noexcept = 0;

    /// Makes progress: carries out the next operation, or looks which are done, and resumes who waited for them.
    /// Returns true while more can be done at once; false lets the gpu's thread sleep.
    virtual bool poll() = 0;

    /// Fails all streams, with what waits for them; see stream::fail. The device runs nothing any more.
    void abort(std::exception_ptr why) noexcept;

    /// From now on `home`, which is the loop of this thread, polls the device. For a device that other threads wake.
    virtual void driven_by(event_loop& home) noexcept;

    /// From now on what its streams do is recorded in `where`, which outlives the device. Before anything is put there.
    void record_in(trace_part& where);
    /// Where that is, or null.
    trace_part* recorded_in() const noexcept { return trace_; }

    /// Gives memory back once every one of `tickets` is over. Called by ~buffer.
    void retire(std::byte* memory, std::size_t bytes, std::span<ticket const> tickets) noexcept;

protected:
    /// Frees retired memory whose tickets are over; a backend calls it as its timelines advance.
    void reap() noexcept;

    /// Frees all retired memory; a backend calls it when nothing can run any more.
    void reap_all() noexcept;

private:
    struct limbo {
        std::byte* memory;
        std::size_t bytes;
        std::vector<ticket> tickets;
    };
    std::vector<limbo> limbo_;
    trace_part* trace_ = nullptr;
};

} // namespace plait
