#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <plait/engine/policy.hpp>
#include <plait/engine/scheduler.hpp>
#include <plait/kernels/host/isa.hpp>
#include <plait/kernels/paged_kv.hpp>
#include <plait/model/numerics.hpp>
#include <plait/model/shard.hpp>

namespace plait {

/// What an engine runs and how much it may use. Every 0 means: plait decides.
struct engine_options {
    std::filesystem::path model;      ///< a GGUF file
    parallelism spread;               ///< over how many devices, and how; on the host each is a device of its own
    unsigned threads = 0;             ///< of the compute pool; 0: the processors that this process may use
    numerics mode = numerics::native; ///< f32 is the reference, slower and larger
    kv_type kv = kv_type::f16;        ///< how keys and values are stored
    std::int64_t memory = 0;          ///< bytes that may be planned, of all devices; 0: what the system has available
    std::int64_t context = 0;         ///< tokens of the longest sequence; 0: what the model was made for
    std::int64_t sequences = 16;      ///< that run at once
    std::int64_t kv_tokens = 0;       ///< tokens of all sequences; 0: sequences × context, or as many as fit
    std::int64_t step_tokens = 512;   ///< tokens that one step computes at most; bounds how long a step takes
    std::int64_t queue = 1024;        ///< requests that may wait; more are refused with errc::overloaded
    std::int64_t unread_pieces = 64;  ///< pieces that a reader may leave before its sequence waits for it
    admission admit = admission::overcommit;
    std::shared_ptr<policy> schedule;         ///< null: first come, first served
    std::optional<host::isa> instruction_set; ///< none: the best that the processor has
};

/// How far open() has come.
struct load_progress {
    enum class phase : std::uint8_t { planning, loading, ready };
    phase now = phase::planning;
    double part = 0; ///< of the phase, 0 … 1
};
using progress = std::function<void(load_progress)>;

} // namespace plait
