#pragma once

#include <memory>

#include <plait/actors/actor.hpp>
#include <plait/actors/runtime/event_loop.hpp>
#include <plait/streams/device.hpp>
#include <plait/streams/flow.hpp>

namespace plait {

/// The actor of one device. It lives on a thread of its own, the only one that puts work on the device's streams; when
/// no coroutine of it is ready, that thread drives the device. Derive from it to give the device something to run:
/// a method issues operations through a flow, awaits the tickets whose results it needs, and returns them.
///
/// What is sent to a gpu is a flat value: numbers and arrays of numbers, never a pointer or a closure, so that the same
/// messages reach a device in a worker process.
class gpu : public actor, private event_loop::poller {
public:
    /// Drives `owned` from `home`, on which this actor must be spawned. Both outlive or end with the actor.
    gpu(event_loop& home, std::unique_ptr<device> owned);
    ~gpu();

    device_kind kind() const noexcept { return device_->kind(); }

protected:
    /// For memory and sizes.
    device& dev() noexcept { return *device_; }
    /// To put work on: from the first call on the loop drives the device.
    device& driven();
    /// A flow that begins on the stream of `role`.
    flow flow_on(stream_role role) { return flow(driven().stream_of(role)); }

private:
    bool poll() override { return device_->poll(); }

    event_loop& home_;
    std::unique_ptr<device> device_;
    bool attached_ = false;
};

} // namespace plait
