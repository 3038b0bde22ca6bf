#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <plait/actors/actor.hpp>
#include <plait/actors/runtime/runtime.hpp>
#include <plait/actors/tasks/task.hpp>
#include <plait/engine/generation.hpp>
#include <plait/engine/options.hpp>
#include <plait/engine/request.hpp>
#include <plait/kv/planner.hpp>
#include <plait/model/chat/chat_template.hpp>
#include <plait/model/model_spec.hpp>
#include <plait/model/text/tokenizer.hpp>

namespace plait {

class engine_core;
class load_balance;
enum class reading : std::uint8_t;

/// What an engine loaded; immutable.
struct engine_info {
    model_spec spec;
    parallelism spread;
    std::int32_t replicas = 1;
    memory_plan memory;       ///< of each device; where they differ, of the one with the least room
    std::string device;       ///< for people
    std::int64_t context = 0; ///< tokens of the longest sequence
    std::shared_ptr<tokenizer const> text;
    std::shared_ptr<chat_template const> chat; ///< null: the model has no template
    std::string bos_text, eos_text;            ///< as the template writes them
    answer_style style;                        ///< of its answers to messages, by the template's markers
    std::vector<std::int32_t> markers;         ///< of that style: those that are control tokens
};

/// Counters of an engine, for metrics.
struct engine_stats {
    std::int64_t running = 0; ///< sequences
    std::int64_t waiting = 0;
    std::int64_t free_pages = 0;
    std::int64_t pages = 0;
    std::int64_t preemptions = 0;
    std::int64_t restarts = 0; ///< of the devices, after one was lost
    std::int64_t steps = 0;
    std::int64_t prompt_tokens = 0; ///< computed, those of recomputed prompts included
    std::int64_t generated_tokens = 0;
};
/// Of several replicas together.
engine_stats& operator+=(engine_stats& sum, engine_stats const& more);

/// A loaded model that answers requests, many at once. Of several replicas the one with the fewest requests takes the
/// next, those counted that are on their way. A handle: copies name the same engine. The engine runs on the runtime
/// that it was opened on, which must outlive it; destroying the last handle cancels what still runs.
class engine {
public:
    /// Names no engine: may only be assigned to, asked whether it is one, and destroyed.
    engine() noexcept = default;

    /// Admits a request. Ends in a generation, or throws: errc::never_fits, errc::overloaded, errc::invalid_argument
    /// (naming the parameter), errc::template_failed, errc::unsupported (no chat template), errc::closed,
    /// errc::engine_failed.
    task<generation> submit(request what) const;

    /// The log-probability of each token of the request's prompt but the first, given all those before it: element i is
    /// that of token i + 1, as token_info::logprob. Of the request only the prompt, the timeout and what policies look
    /// at count; the prompt may fill the context. Such requests share steps with all others. Throws as submit(), also
    /// errc::unsupported where the model's prompts see all of themselves, and errc::deadline_exceeded, errc::cancelled
    /// (the engine was closed).
    task<std::vector<float>> score(request what) const;

    /// The hidden state of the request's prompt behind the final norm, as wide as the model: that of all of its tokens,
    /// pooled; `normalised`: divided by its Euclidean length. Otherwise as score(), but of every model.
    task<std::vector<float>> embed(request what, pooling how = pooling::mean, bool normalised = false) const;

    /// Takes no more requests; lets the ones that were admitted end (`drain`) or cancels them; returns when all device
    /// work is done and the memory is free.
    task<> close(bool drain = true) const;

    task<engine_stats> stats() const;

    engine_info const& info() const noexcept { return *info_; }

    /// The runtime that it was opened on.
    runtime& home() const noexcept { return *home_; }

    explicit operator bool() const noexcept { return home_ != nullptr; }

    /// The prompt that submit() would make of this request today. Throws as submit() does for it.
    std::vector<std::int32_t> prompt_of(request const& what) const;

private:
    friend task<engine> open(runtime& home, engine_options options, progress report);
    engine(runtime& home, std::shared_ptr<engine_info const> info, std::vector<ref<engine_core>> cores,
           std::shared_ptr<load_balance> loads, std::shared_ptr<void> last);
    task<std::vector<float>> read(request what, reading why) const;

    runtime* home_ = nullptr;
    std::shared_ptr<engine_info const> info_;
    std::vector<ref<engine_core>> cores_; ///< one a replica
    std::shared_ptr<load_balance> loads_; ///< of these
    std::shared_ptr<void> last_;          ///< what the last handle destroys: closes the engine
};

/// Opens a model: reads the header, plans the memory, refuses what cannot fit and loads.
/// `report` is called on the executor of the caller. Cancelling stops the loading. Throws errc::not_found, bad_file,
/// unsupported, never_fits (with the plan), invalid_argument (naming the option), io, out_of_memory.
task<engine> open(runtime& home, engine_options options, progress report = {});

/// The memory that open() would plan for these options, without loading anything. Throws as open().
memory_plan plan(engine_options const& options);

} // namespace plait
