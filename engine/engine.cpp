#include <algorithm>
#include <string>

#include <plait/actors/ask.hpp>
#include <plait/actors/error.hpp>
#include <plait/engine/engine.hpp>
#include <plait/engine/engine_core.hpp>
#include <plait/engine/prompt.hpp>
#include <plait/engine/rank_group.hpp>
#include <plait/model/kv_layers.hpp>
#include <plait/streams/host/host_memory.hpp>

namespace plait {

namespace {

/// Part of what the system has available that plait plans with when nobody says how much: the rest is the host's.
constexpr double memory_share = 0.8;

/// A step notes in the bits of a number which lanes one reads from.
constexpr std::int64_t most_lanes = 32;

/// What the header of a file and the options decide together, before anything is loaded.
struct layout {
    described_model model;
    std::vector<shard> parts; ///< one a rank
    memory_plan memory;       ///< of the rank with the least room
    step_limits limits;
    std::int64_t lanes = 1;
    std::int64_t context = 0;
};

void require_positive(char const* name, std::int64_t value)
{
    if (value < 1) throw error(errc::invalid_argument, std::string(name) + ": " + std::to_string(value));
}

void require_not_negative(char const* name, std::int64_t value)
{
    if (value < 0) throw error(errc::invalid_argument, std::string(name) + ": " + std::to_string(value));
}

layout lay_out(gguf_file const& file, engine_options const& options)
{
    require_positive("sequences", options.sequences);
    require_positive("step_tokens", options.step_tokens);
    require_positive("unread_pieces", options.unread_pieces);
    require_not_negative("memory", options.memory);
    require_not_negative("context", options.context);
    require_not_negative("kv_tokens", options.kv_tokens);
    require_not_negative("queue", options.queue);
    require_not_negative("lanes", options.lanes);

    layout out;
    out.model = describe(file);
    auto const& spec = out.model.spec;
    out.context = options.context > 0 ? options.context : spec.context;
    if (out.context > spec.context)
        throw error(errc::invalid_argument, "context: " + std::to_string(out.context) +
                                                ", but the model was made for " + std::to_string(spec.context));
    out.lanes = options.lanes > 0 ? options.lanes : options.spread.tensor > 1 ? 2 : 1;
    if (out.lanes > most_lanes) throw error(errc::invalid_argument, "lanes: " + std::to_string(out.lanes));
    out.limits = {options.step_tokens, options.sequences, out.context,
                  options.spread.pipeline > 1 ? 2 * out.lanes : out.lanes};

    check(options.spread, file, out.model);
    out.parts = divide(options.spread, spec);
    auto all = options.memory > 0
                   ? options.memory
                   : static_cast<std::int64_t>(memory_share * static_cast<double>(host::available_memory()));
    for (auto const& part : out.parts) {
        if (part.rank > 0) continue; // as the first of its stage
        memory_request request;
        request.memory = all / options.spread.ranks();
        request.fixed = model_weights::plan(file, out.model, options.mode, part);
        for (auto& line : decoder::plan(part_of(spec, part), part, out.limits))
            request.fixed.push_back(std::move(line));
        request.kv = kv_geometry_of(spec, options.kv, part);
        request.context = out.context;
        request.sequences = options.sequences;
        request.kv_tokens = options.kv_tokens;
        auto plan = plan_memory(request);
        if (part.stage == 0 || plan.pages < out.memory.pages) out.memory = std::move(plan);
    }
    return out;
}

std::shared_ptr<engine_info> describe_engine(gguf_file const& file, layout const& all, engine_options const& options)
{
    auto info = std::make_shared<engine_info>();
    info->spec = all.model.spec;
    info->memory = all.memory;
    info->spread = options.spread;
    info->context = all.context;
    info->text = std::make_shared<tokenizer>(read_vocabulary(file));
    if (static_cast<std::int64_t>(info->text->size()) != all.model.spec.vocabulary)
        throw error(errc::bad_file, "tokenizer.ggml.tokens: " + std::to_string(info->text->size()) +
                                        " tokens, but the embedding has " + std::to_string(all.model.spec.vocabulary));
    if (auto source = file.string("tokenizer.chat_template", ""); !source.empty())
        info->chat = std::make_shared<chat_template>(chat_template::parse(std::string(source)));
    if (auto bos = info->text->bos()) info->bos_text = info->text->piece(*bos);
    if (auto eos = info->text->eos()) info->eos_text = info->text->piece(*eos);
    return info;
}

/// What the last handle of an engine destroys.
struct last_handle {
    doorbell bell;
    ~last_handle()
    {
        bell->abandoned.store(true, std::memory_order_release);
        bell->ring();
    }
};

} // namespace

engine::engine(runtime& home, std::shared_ptr<engine_info const> info, ref<engine_core> core,
               std::shared_ptr<void> last)
    : home_(&home)
    , info_(std::move(info))
    , core_(std::move(core))
    , last_(std::move(last))
{
}

task<generation> engine::submit(request what) const
{
    auto channel = co_await ask<&engine_core::submit>(core_, std::move(what));
    co_return generation(std::move(channel));
}

task<> engine::close(bool drain) const
{
    co_await ask<&engine_core::close>(core_, drain);
}

task<engine_stats> engine::stats() const
{
    auto stats = co_await ask<&engine_core::stats>(core_);
    co_return stats;
}

std::vector<std::int32_t> engine::encode_chat(std::span<chat_message const> messages) const
{
    request what;
    what.messages.assign(messages.begin(), messages.end());
    return prompt_tokens(what, *info_, home_->clock().date());
}

memory_plan plan(engine_options const& options)
{
    return lay_out(gguf_file::open(options.model), options).memory;
}

task<engine> open(runtime& home, engine_options options, progress report)
{
    if (report) report({load_progress::phase::planning, 0});
    auto file = gguf_file::open(options.model);
    auto all = lay_out(file, options);
    auto info = describe_engine(file, all, options);

    auto const all_threads = home.has_threads() ? runtime::available_cpus() : 1U;
    auto threads = options.threads == 0 ? all_threads : options.threads;
    rank_group::settings what;
    what.threads = threads;
    what.memory = all.memory.memory;
    what.spread = options.spread;
    what.simulated = options.simulated;
    what.parts = all.parts;
    what.rank.model = options.model;
    what.rank.mode = options.mode;
    what.rank.kv = options.kv;
    what.rank.pages = all.memory.pages;
    what.rank.slots = options.sequences;
    what.rank.limits = all.limits;
    what.rank.instruction_set = options.instruction_set.value_or(host::best_isa());
    what.hang_limit = options.hang_limit;
    what.make_device = options.make_device;
    auto ranks = std::make_shared<rank_group>(home, std::move(what));
    info->device = ranks->description();
    std::function<void(double)> heard;
    if (report) heard = [&report](double part) { report({load_progress::phase::loading, part}); };
    auto loaded = co_await as_result(ranks->load(std::move(heard)));
    if (loaded.failure()) {
        co_await ranks->stop();
        std::rethrow_exception(loaded.failure());
    }

    engine_core::parts parts;
    parts.home = &home;
    parts.ranks = ranks;
    parts.info = info;
    parts.schedule = {kv_geometry_of(all.model.spec, options.kv),
                      all.memory.pages,
                      options.sequences,
                      options.step_tokens,
                      options.admit,
                      options.spread.pipeline,
                      all.lanes,
                      options.costs};
    parts.options = std::move(options);
    parts.bell = std::make_shared<engine_bell>(home);
    auto bell = parts.bell;
    auto core = home.spawn<engine_core>(std::move(parts));
    co_await tell<&engine_core::serve>(core);
    auto last = std::make_shared<last_handle>(bell);
    if (report) report({load_progress::phase::ready, 1});
    co_return engine(home, info, core, last);
}

} // namespace plait
