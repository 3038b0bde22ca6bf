#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <plait/engine/costs.hpp>
#include <plait/engine/policy.hpp>
#include <plait/engine/scheduler.hpp>
#include <plait/engine/simulated_devices.hpp>
#include <plait/kernels/host/isa.hpp>
#include <plait/kernels/paged_kv.hpp>
#include <plait/model/model_overrides.hpp>
#include <plait/model/numerics.hpp>
#include <plait/model/shard.hpp>
#include <plait/streams/device.hpp>
#include <plait/streams/host/compute_pool.hpp>
#include <plait/streams/trace.hpp>

namespace plait {

/// Makes the device of rank `rank`, with `memory` bytes; host devices share `pool`, which is null where devices are
/// simulated.
using device_maker = std::function<std::unique_ptr<device>(std::size_t rank, std::shared_ptr<host::compute_pool> pool,
                                                           std::size_t memory)>;

/// What an engine runs and how much it may use. Every 0 means: plait decides.
struct engine_options {
    std::filesystem::path model;      ///< a GGUF file, the first of several, or a Hugging Face folder
    parallelism spread;               ///< over how many devices, and how; on the host each is a device of its own
    std::int32_t replicas = 1;        ///< of all that: each answers requests by itself, with its own weights and pages
    unsigned threads = 0;             ///< of the compute pool; 0: the processors that this process may use
    numerics mode = numerics::native; ///< f32 is the reference, slower and larger
    /// What float matrices become while they are loaded: q8_0 or q4_1, the embedding q8_0. None: they stay.
    std::optional<weight_format> quantize;
    model_overrides overrides;       ///< what is taken instead of what the model's files say
    kv_type kv = kv_type::f16;       ///< how keys and values are stored
    std::int64_t memory = 0;         ///< bytes that may be planned, of all devices; 0: what the system has available
    std::int64_t context = 0;        ///< tokens of the longest sequence; 0: what the model was made for
    std::int64_t sequences = 16;     ///< that run at once
    std::int64_t kv_tokens = 0;      ///< tokens of all sequences; 0: sequences × context, or as many as fit
    std::int64_t step_tokens = 512;  ///< tokens that one step computes at most; bounds how long a step takes
    std::int64_t queue = 1024;       ///< requests that may wait; more are refused with errc::overloaded
    std::int64_t unread_pieces = 64; ///< pieces that a reader may leave before its sequence waits for it
    admission admit = admission::overcommit;
    std::shared_ptr<policy> schedule; ///< null: first come, first served
    /// Instead of `schedule` where there are several replicas: each has a policy of its own.
    std::function<std::shared_ptr<policy>()> make_schedule;
    /// Passes that a step may be divided into, each with activations of its own; 0: two where ranks share layers.
    std::int64_t lanes = 0;
    std::shared_ptr<cost_model const> costs;  ///< what policies choose lanes by; null: they take one
    std::optional<host::isa> instruction_set; ///< none: the best that the processor has
    /// How often in a row the devices are made again after one was lost, and the requests that ran are replayed on
    /// them: their readers see a pause. A step that is done begins the count anew. After that the engine fails.
    std::int32_t restarts = 3;
    /// A device that keeps another one waiting for longer, or a step for twice as long, is lost.
    duration hang_limit = std::chrono::minutes(5);
    /// Whether ranks compare their collectives as they put them; see host::host_group_options::check.
    bool check_collectives = host::host_group_options().check;
    device_maker make_device; ///< null: host devices, or `simulated` ones
    /// Run on simulated devices, which take their memory and their tokens from the host and their time from a model of
    /// cost; `threads` is not used. None: on the host.
    std::optional<simulated_devices> simulated;
    std::shared_ptr<trace> record; ///< what the engine and its devices do is recorded there; null: nowhere
};

/// How far open() has come.
struct load_progress {
    enum class phase : std::uint8_t { planning, loading, ready };
    phase now = phase::planning;
    double part = 0; ///< of the phase, 0 … 1
};
using progress = std::function<void(load_progress)>;

} // namespace plait
