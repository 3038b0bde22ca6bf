#pragma once

#include <array>
#include <memory>

#include <plait/streams/device.hpp>
#include <plait/streams/host/host_stream.hpp>
#include <plait/streams/host/mapped_memory.hpp>

namespace plait::host {

/// The processor as a device: its memory is the process's, its streams run on the compute pool. One operation runs at a
/// time, on all workers; between two operations the gpu's thread runs the coroutines that became ready, and the
/// runnable stream of the most urgent role goes next. A collective that a stream has come to begins before that.
class host_device final : public device {
public:
    /// `memory_limit`: the most bytes that allocate() hands out.
    host_device(std::shared_ptr<compute_pool> pool, std::size_t memory_limit);
    ~host_device() override;

    device_kind kind() const noexcept override { return device_kind::host; }
    std::string description() const override;
    stream& stream_of(stream_role role) noexcept override { return streams_[static_cast<std::size_t>(role)]; }
    std::byte* allocate(std::size_t bytes) override { return memory_.allocate(bytes); }
    void deallocate(std::byte* memory, std::size_t bytes) noexcept override { memory_.deallocate(memory, bytes); }
    bool poll() override;
    void driven_by(event_loop& home) noexcept override { bell_->open(home); }

    /// Bytes that are handed out now.
    std::size_t allocated() const noexcept { return memory_.allocated(); }

private:
    void run_next(host_stream& of);

    std::shared_ptr<compute_pool> pool_;
    mapped_memory memory_;
    std::shared_ptr<doorbell> bell_ = std::make_shared<doorbell>();
    std::array<host_stream, stream_roles> streams_{host_stream(bell_), host_stream(bell_), host_stream(bell_),
                                                   host_stream(bell_), host_stream(bell_)};
};

} // namespace plait::host
