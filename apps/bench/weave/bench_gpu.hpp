#pragma once

#include <plait/actors/ask.hpp>
#include <plait/actors/runtime/runtime.hpp>
#include <plait/streams/gpu.hpp>
#include <plait/streams/host/host_device.hpp>

#include <functional>
#include <memory>
#include <optional>
#include <utility>

namespace plait::bench {

/// A gpu that does what a workload gives it, on its own thread.
class bench_gpu final : public gpu {
public:
    using body = std::function<task<>(bench_gpu&)>;

    bench_gpu(event_loop& home, std::unique_ptr<device> owned)
        : gpu(home, std::move(owned))
    {
    }

    task<> run(body what) { co_await what(*this); }

    using gpu::dev;
    using gpu::driven;
};

/// One on the host device, its thread on that processor, if any.
inline ref<bench_gpu> make_bench_gpu(runtime& home, std::shared_ptr<host::compute_pool> pool,
                                     std::optional<unsigned> cpu)
{
    auto owned = std::make_unique<host::host_device>(std::move(pool), std::size_t(1) << 30);
    loop_options how;
    how.name = "plait-gpu-bench";
    how.cpu = cpu;
    auto loop = home.new_loop(how);
    return home.spawn_on<bench_gpu>(loop, std::ref(*loop), std::move(owned));
}

} // namespace plait::bench
