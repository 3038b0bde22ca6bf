#pragma once

#include <plait/actors/time/clock.hpp>
#include <plait/apps/bench/model/peer.hpp>
#include <plait/kernels/paged_kv.hpp>
#include <plait/model/numerics.hpp>
#include <plait/model/shard.hpp>
#include <plait/streams/trace.hpp>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace plait::bench {

/// What `plait-bench model` measures.
struct model_bench {
    std::filesystem::path model;
    std::vector<unsigned> threads;                     ///< an engine for each; never empty once parsed
    std::int64_t prompt = 512;                         ///< tokens of the prefill row
    std::int64_t generate = 128;                       ///< tokens of the decode rows, after the first
    std::vector<std::int64_t> batches{1, 2, 4, 8, 16}; ///< sequences that decode at once, a row for each
    int repetitions = 5;
    duration idle = std::chrono::seconds(5); ///< how long the engine idles; zero leaves the row out
    numerics mode = numerics::native;
    kv_type kv = kv_type::f16;
    parallelism spread;
    std::int32_t replicas = 1;
    std::vector<peer> beside; ///< measured by turns with plait
    bool json = false;
    std::string trace; ///< the file that is to tell what the engines and their devices did; may be empty
    std::shared_ptr<plait::trace> record; ///< what is written there; null without
};

} // namespace plait::bench
