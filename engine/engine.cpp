#include <algorithm>
#include <cmath>
#include <string>

#include <plait/actors/ask.hpp>
#include <plait/actors/error.hpp>
#include <plait/actors/tasks/when_all.hpp>
#include <plait/engine/engine.hpp>
#include <plait/engine/engine_core.hpp>
#include <plait/engine/prompt.hpp>
#include <plait/engine/rank_group.hpp>
#include <plait/engine/shared_progress.hpp>
#include <plait/model/chat/builtin_templates.hpp>
#include <plait/model/kv_layers.hpp>
#include <plait/model/quantise.hpp>
#include <plait/model/text/hub_tokenizer.hpp>
#include <plait/model/text/model_tokenizer.hpp>
#include <plait/streams/host/host_memory.hpp>

namespace plait {

engine_stats& operator+=(engine_stats& sum, engine_stats const& more)
{
    sum.running += more.running;
    sum.waiting += more.waiting;
    sum.free_pages += more.free_pages;
    sum.pages += more.pages;
    sum.preemptions += more.preemptions;
    sum.restarts += more.restarts;
    sum.steps += more.steps;
    sum.prompt_tokens += more.prompt_tokens;
    sum.generated_tokens += more.generated_tokens;
    return sum;
}

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

layout lay_out(model_files& files, engine_options const& options)
{
    require_positive("sequences", options.sequences);
    require_positive("step_tokens", options.step_tokens);
    require_positive("unread_pieces", options.unread_pieces);
    require_not_negative("memory", options.memory);
    require_not_negative("context", options.context);
    require_not_negative("kv_tokens", options.kv_tokens);
    require_not_negative("queue", options.queue);
    require_not_negative("lanes", options.lanes);
    require_positive("replicas", options.replicas);
    if (options.schedule && options.replicas > 1)
        throw error(errc::invalid_argument, "schedule: a policy of one replica; several need make_schedule");

    layout out;
    out.model = describe(files);
    if (options.quantize) quantise(files, out.model, *options.quantize);
    apply(options.overrides, out.model.spec);
    auto const& spec = out.model.spec;
    out.context = options.context > 0 ? options.context : spec.context;
    if (out.context > spec.context)
        throw error(errc::invalid_argument, "context: " + std::to_string(out.context) +
                                                ", but the model was made for " + std::to_string(spec.context));
    out.lanes = options.lanes > 0 ? options.lanes : options.spread.tensor > 1 ? 2 : 1;
    if (out.lanes > most_lanes) throw error(errc::invalid_argument, "lanes: " + std::to_string(out.lanes));
    out.limits = {options.step_tokens, options.sequences, out.context,
                  options.spread.pipeline > 1 ? 2 * out.lanes : out.lanes};

    check(options.spread, files.tensors(), out.model);
    out.parts = divide(options.spread, spec);
    auto all = options.memory > 0
                   ? options.memory
                   : static_cast<std::int64_t>(memory_share * static_cast<double>(host::available_memory()));
    for (auto const& part : out.parts) {
        if (part.rank > 0) continue; // as the first of its stage
        memory_request request;
        request.memory = all / (options.replicas * options.spread.ranks());
        request.fixed = model_weights::plan(files.tensors(), out.model, options.mode, part);
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

tokenizer tokenizer_of(model_files const& files, std::int64_t vocabulary)
{
    auto description = read_tokenizer(files);
    if (files.hf() != nullptr) pad_vocabulary(description, static_cast<std::size_t>(vocabulary));
    return tokenizer(description);
}

std::shared_ptr<engine_info> describe_engine(model_files const& files, layout const& all, engine_options const& options)
{
    auto info = std::make_shared<engine_info>();
    info->spec = all.model.spec;
    info->memory = all.memory;
    info->spread = options.spread;
    info->replicas = options.replicas;
    info->context = all.context;
    info->text = std::make_shared<tokenizer>(tokenizer_of(files, all.model.spec.vocabulary));
    if (static_cast<std::int64_t>(info->text->size()) != all.model.spec.vocabulary)
        throw error(errc::bad_file, files.source() + ": tokenizer: " + std::to_string(info->text->size()) +
                                        " tokens, but the embedding has " + std::to_string(all.model.spec.vocabulary));
    auto source = files.chat_template();
    if (source.empty()) source = builtin_template(info->spec);
    info->style = answer_style_of(source);
    info->markers = marker_tokens(*info->text, info->style);
    if (!source.empty()) info->chat = std::make_shared<chat_template>(chat_template::parse(std::move(source)));
    if (auto bos = info->text->bos()) info->bos_text = info->text->piece(*bos);
    if (auto eos = info->text->eos()) info->eos_text = info->text->piece(*eos);
    return info;
}

/// What the last handle of an engine destroys.
struct last_handle {
    std::vector<doorbell> bells; ///< of each replica
    ~last_handle()
    {
        for (auto const& bell : bells) {
            bell->abandoned.store(true, std::memory_order_release);
            bell->ring();
        }
    }
};

/// Loads all replicas side by side; `report` hears the part of all that is done.
task<> load(std::vector<std::shared_ptr<rank_group>> const& replicas, progress const& report)
{
    std::function<void(double)> loading;
    if (report) loading = [&report](double part) { report({load_progress::phase::loading, part}); };
    auto heard = share_progress(replicas.size(), loading);
    std::vector<task<>> all;
    all.reserve(replicas.size());
    for (std::size_t i = 0; i < replicas.size(); ++i)
        all.push_back(replicas[i]->load(std::move(heard[i])));
    co_await when_all(std::move(all));
}

} // namespace

engine::engine(runtime& home, std::shared_ptr<engine_info const> info, std::vector<ref<engine_core>> cores,
               std::shared_ptr<load_balance> loads, std::shared_ptr<void> last)
    : home_(&home)
    , info_(std::move(info))
    , cores_(std::move(cores))
    , loads_(std::move(loads))
    , last_(std::move(last))
{
}

task<generation> engine::submit(request what) const
{
    auto place = load_balance::take(loads_, what.choices);
    auto const& core = cores_[place.replica()];
    auto channel = co_await ask<&engine_core::submit>(core, std::move(what), reading::none, std::move(place));
    co_return generation(std::move(channel));
}

/// Computes a prompt for what `why` says.
task<std::vector<float>> engine::read(request what, reading why) const
{
    auto place = load_balance::take(loads_, 1); // whatever `choices` says
    auto const& core = cores_[place.replica()];
    auto channel = co_await ask<&engine_core::submit>(core, std::move(what), why, std::move(place));
    generation answer(channel); // cancels the request where this is left before its end
    for (;;) {
        auto piece = co_await answer.next();
        if (!piece) break;
    }
    auto const& result = channel->outcome;
    switch (result.choices.front().finish) {
    case finish_reason::deadline:
        throw error(errc::deadline_exceeded, "the request's timeout");
    case finish_reason::cancelled:
        throw error(errc::cancelled, "the engine was closed");
    case finish_reason::failed:
        throw error(errc::engine_failed, result.failure.message());
    default:
        co_return std::move(channel->values);
    }
}

task<std::vector<float>> engine::score(request what) const
{
    auto out = co_await read(std::move(what), reading::scores);
    co_return out;
}

task<std::vector<float>> engine::embed(request what, pooling how, bool normalised) const
{
    auto const why = how == pooling::mean ? reading::mean : how == pooling::last ? reading::last : reading::first;
    auto out = co_await read(std::move(what), why);
    double squares = 0;
    for (auto const x : out)
        squares += static_cast<double>(x) * static_cast<double>(x);
    if (normalised && squares > 0)
        for (auto& x : out)
            x = static_cast<float>(static_cast<double>(x) / std::sqrt(squares));
    co_return out;
}

task<> engine::close(bool drain) const
{
    std::vector<task<>> all;
    all.reserve(cores_.size());
    for (auto const& core : cores_)
        all.push_back(ask<&engine_core::close>(core, drain));
    co_await when_all(std::move(all));
}

task<engine_stats> engine::stats() const
{
    engine_stats sum;
    for (auto const& core : cores_) {
        auto one = co_await ask<&engine_core::stats>(core);
        sum += one;
    }
    co_return sum;
}

std::vector<std::int32_t> engine::prompt_of(request const& what) const
{
    return prompt_tokens(what, *info_, home_->clock().date());
}

memory_plan plan(engine_options const& options)
{
    auto files = open_model(options.model);
    return lay_out(files, options).memory;
}

task<engine> open(runtime& home, engine_options options, progress report)
{
    if (report) report({load_progress::phase::planning, 0});
    auto files = open_model(options.model);
    auto all = lay_out(files, options);
    auto info = describe_engine(files, all, options);

    auto const all_threads = home.has_threads() ? runtime::available_cpus() : 1U;
    auto threads = options.threads == 0 ? all_threads : options.threads;
    rank_group::settings what;
    if (!options.simulated) what.pool = std::make_shared<host::compute_pool>(home, threads);
    what.memory = all.memory.memory;
    what.spread = options.spread;
    what.record = options.record;
    what.parts = all.parts;
    what.rank.model = options.model;
    what.rank.mode = options.mode;
    what.rank.quantize = options.quantize;
    what.rank.overrides = options.overrides;
    what.rank.kv = options.kv;
    what.rank.pages = all.memory.pages;
    what.rank.slots = options.sequences;
    what.rank.limits = all.limits;
    what.rank.instruction_set = options.instruction_set.value_or(host::best_isa());
    what.hang_limit = options.hang_limit;
    what.check_collectives = options.check_collectives;
    what.simulated = options.simulated;
    what.make_device = options.make_device;
    std::vector<std::shared_ptr<rank_group>> replicas;
    replicas.reserve(static_cast<std::size_t>(options.replicas));
    what.replicas = options.replicas;
    for (what.replica = 0; what.replica < options.replicas; ++what.replica)
        replicas.push_back(std::make_shared<rank_group>(home, what));
    info->device = replicas.front()->description();
    auto loaded = co_await as_result(load(replicas, report));
    if (loaded.failure()) {
        for (auto const& ranks : replicas)
            co_await ranks->stop();
        std::rethrow_exception(loaded.failure());
    }

    engine_core::parts parts;
    parts.home = &home;
    parts.info = info;
    parts.schedule.kv = kv_geometry_of(all.model.spec, options.kv);
    parts.schedule.pages = all.memory.pages;
    parts.schedule.slots = options.sequences;
    parts.schedule.step_tokens = options.step_tokens;
    parts.schedule.admit = options.admit;
    parts.schedule.stages = options.spread.pipeline;
    parts.schedule.prefix = all.model.spec.prefix;
    for (auto const& layer : all.model.spec.layers)
        if (!layer.attention.rope.long_factors.empty())
            parts.schedule.short_context = layer.attention.rope.short_context;
    parts.schedule.lanes = all.lanes;
    parts.schedule.costs = options.costs;
    parts.options = std::move(options);
    std::vector<ref<engine_core>> cores;
    cores.reserve(replicas.size());
    auto last = std::make_shared<last_handle>();
    parts.loads = std::make_shared<load_balance>(replicas.size());
    for (auto& ranks : replicas) {
        parts.ranks = std::move(ranks);
        parts.bell = std::make_shared<engine_bell>(home);
        parts.replica = cores.size();
        auto const of = replicas.size() > 1 ? "engine of replica " + std::to_string(parts.replica) : "engine";
        if (auto const& trace = parts.options.record)
            parts.record = &trace->add(of + ": " + parts.options.model.filename().string(), home.clock());
        if (parts.options.make_schedule) parts.options.schedule = parts.options.make_schedule();
        last->bells.push_back(parts.bell);
        auto core = home.spawn<engine_core>(parts);
        co_await tell<&engine_core::serve>(core);
        cores.push_back(std::move(core));
    }
    if (report) report({load_progress::phase::ready, 1});
    co_return engine(home, info, std::move(cores), parts.loads, last);
}

} // namespace plait
