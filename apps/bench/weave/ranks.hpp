#pragma once

#include <plait/apps/bench/weave/bench_gpu.hpp>
#include <plait/streams/host/host_group.hpp>

#include <functional>
#include <memory>
#include <vector>

namespace plait::bench {

/// Host devices that are the ranks of a group, each with a thread of its own.
class bench_ranks {
public:
    /// What a rank does, on its own gpu.
    using body = std::function<task<>(bench_gpu&, communicator&)>;

    /// `shared`: the pool of all; null: one worker each, on the processors in turn.
    bench_ranks(runtime& home, int ranks, std::shared_ptr<host::compute_pool> const& shared,
                host::host_group_options how);

    /// All ranks at once.
    task<> run(body what);
    task<> stop();

private:
    std::vector<std::unique_ptr<communicator>> group_;
    std::vector<ref<bench_gpu>> gpus_;
};

} // namespace plait::bench
