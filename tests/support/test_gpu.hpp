#pragma once

#include <functional>
#include <memory>

#include <plait/actors/runtime/runtime.hpp>
#include <plait/streams/buffer.hpp>
#include <plait/streams/gpu.hpp>
#include <plait/streams/host/host_device.hpp>

namespace plait::test {

/// A gpu on the host device that runs what a test gives it, on its own thread.
class test_gpu final : public gpu {
public:
    using body = std::function<task<>(test_gpu&)>;

    test_gpu(event_loop& home, std::unique_ptr<device> owned)
        : gpu(home, std::move(owned))
    {
    }

    task<> run(body what) { co_await what(*this); }

    using gpu::dev;
    using gpu::driven;
    using gpu::flow_on;
};

inline ref<test_gpu> make_test_gpu(runtime& rt, unsigned workers, std::size_t memory = std::size_t(64) << 20)
{
    auto pool = std::make_shared<host::compute_pool>(rt, workers);
    auto owned = std::make_unique<host::host_device>(pool, memory);
    auto loop = rt.new_loop("plait-gpu-test");
    return rt.spawn_on<test_gpu>(loop, std::ref(*loop), std::move(owned));
}

/// Runs `what` on a gpu of its own and waits until the gpu is gone.
inline task<> on_test_gpu(runtime& rt, unsigned workers, test_gpu::body what)
{
    auto g = make_test_gpu(rt, workers);
    auto outcome = co_await as_result(ask<&test_gpu::run>(g, std::move(what)));
    co_await stop(g);
    std::move(outcome).value();
}

} // namespace plait::test
