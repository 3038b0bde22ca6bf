#pragma once

#include <algorithm>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include <plait/actors/runtime/runtime.hpp>
#include <plait/actors/tasks/when_all.hpp>
#include <plait/engine/rank.hpp>
#include <plait/model/kv_layers.hpp>
#include <plait/model/quantise.hpp>
#include <plait/streams/host/host_device.hpp>
#include <plait/streams/host/host_group.hpp>
#include <plait/streams/weave.hpp>

namespace plait::test {

/// Some tokens of one sequence and which of them want logits.
struct probe_chunk {
    probe_chunk(int in, std::int32_t from, std::vector<std::int32_t> ids, bool all = true)
        : sequence(in)
        , first_position(from)
        , tokens(std::move(ids))
        , every(all)
    {
    }
    int sequence;
    std::int32_t first_position;
    std::vector<std::int32_t> tokens;
    bool every; ///< the logits of every token, or of the last one only
};

/// A decoder on the host device that gives its logits away: for tests that compare numbers.
class model_probe final : public gpu {
public:
    struct options {
        options(std::filesystem::path file)
            : model(std::move(file))
        {
        }
        std::filesystem::path model;
        numerics mode = numerics::native;
        std::optional<weight_format> quantize;
        kv_type kv = kv_type::f16;
        host::isa set = host::best_isa();
        std::int64_t sequences = 8;
        std::int64_t positions = 1024;
        std::function<void(model_spec&)> change;        ///< the specification, before it is run
        std::function<void(tensor_map&)> other_tensors; ///< where the weights are, before they are loaded
        std::int32_t prefix = 0;                        ///< sequence_chunk::prefix
        bool stretched_positions = false;               ///< with the rotation of long sequences
        parallelism spread;                             ///< of which this is rank `rank`
        std::int32_t rank = 0;
        std::int64_t lanes = 1;
    };

    model_probe(event_loop& home, std::unique_ptr<device> owned, std::unique_ptr<communicator> tensor = nullptr)
        : gpu(home, std::move(owned))
        , tensor_(std::move(tensor))
    {
    }

    task<> load(options how)
    {
        auto files = open_model(how.model);
        auto model = describe(files);
        if (how.quantize) quantise(files, model, *how.quantize);
        if (how.change) how.change(model.spec);
        if (how.other_tensors) how.other_tensors(model.tensors);
        prefix_ = how.prefix;
        if (how.stretched_positions) table_offset_ = static_cast<std::int32_t>(how.positions);
        check(how.spread, files.tensors(), model);
        auto part = divide(how.spread, model.spec)[static_cast<std::size_t>(how.rank)];
        auto spec = part_of(model.spec, part);
        pages_each_ = pages_of(how.positions);
        ops_ = make_host_ops(how.set);
        weights_ = std::make_unique<model_weights>(dev(), files.tensors(), model, how.mode, part);
        kv_ =
            std::make_unique<kv_storage>(dev(), kv_geometry_of(model.spec, how.kv, part), pages_each_ * how.sequences);
        decoder_ = std::make_unique<decoder>(dev(), spec, part, step_limits{512, 512, how.positions, how.lanes},
                                             *weights_, *kv_);
        auto f = flow_on(stream_role::compute);
        for (double done = 0; done < 1;)
            done = co_await weights_->load_next(f, *ops_, files.tensors());
    }

    /// Runs the chunks in one pass; the logits asked for, row after row.
    task<std::vector<float>> run(std::vector<probe_chunk> chunks)
    {
        std::vector<std::vector<probe_chunk>> passes;
        passes.push_back(std::move(chunks));
        std::vector<stream_role> lanes(1, stream_role::compute); // named: g++ 12 takes no list in an await
        auto logits = co_await run_woven(std::move(passes), std::move(lanes));
        co_return std::move(logits.front());
    }

    /// Runs passes of one plan side by side, pass i in lane i, or in the last lane that there is; the logits of each
    /// that this rank has.
    task<std::vector<std::vector<float>>> run_woven(std::vector<std::vector<probe_chunk>> chunks,
                                                    std::vector<stream_role> lanes)
    {
        std::deque<pass> passes;
        for (std::size_t i = 0; i < chunks.size(); ++i)
            describe_pass(chunks, i, passes);
        weave w(driven(), lanes, {tensor_.get(), nullptr});
        auto issue = [this](flow& f, pass& p, std::size_t space) -> task<> {
            auto* logits = co_await decoder_->forward(f, *ops_, p.step, space);
            // Taken out by the device: the next pass in this lane uses them up.
            host::put(f, {"copy_logits", static_cast<std::int64_t>(8 * p.logits.size())}, copy_logits,
                      logits_copy{logits, p.logits.data(), p.logits.size()});
        };
        std::vector<task<>> all;
        for (std::size_t i = 0; i < passes.size(); ++i)
            all.push_back(issue(w[i], passes[i], std::min(i, w.lanes() - 1)));
        auto outcome = co_await as_result(w.run(std::move(all)));
        for (std::size_t i = 0; i < w.lanes(); ++i)
            co_await w[i];
        std::move(outcome).value();
        std::vector<std::vector<float>> out;
        for (auto& p : passes)
            out.push_back(std::move(p.logits));
        co_return out;
    }

    std::int64_t vocabulary() const { return decoder_->spec().vocabulary; }

private:
    /// What the operations of a pass point to.
    struct pass {
        std::vector<std::int32_t> tokens, wanted;
        std::vector<std::vector<sequence_chunk>> lists;
        std::deque<std::vector<std::int32_t>> pages;
        kv_writes writes;
        std::vector<kv_writes const*> reads;
        decoder_step step;
        std::vector<float> logits;
    };

    struct logits_copy {
        float const* from;
        float* to;
        std::size_t count;
    };
    static void copy_logits(logits_copy const& args, share part)
    {
        if (part.index == 0 && args.count > 0) std::copy_n(args.from, args.count, args.to);
    }

    void describe_pass(std::vector<std::vector<probe_chunk>> const& all, std::size_t which, std::deque<pass>& passes)
    {
        auto& p = passes.emplace_back();
        p.lists.resize(kv_->geometry().groups.size());
        for (auto const& c : all[which]) {
            auto& own = p.pages.emplace_back();
            for (std::int64_t page = 0; page < pages_each_; ++page)
                own.push_back(static_cast<std::int32_t>(c.sequence * pages_each_ + page));
            auto first = static_cast<std::int32_t>(p.tokens.size());
            for (auto& list : p.lists)
                list.push_back({first, static_cast<std::int32_t>(c.tokens.size()), c.first_position, own.data(),
                                prefix_, table_offset_});
            for (std::size_t t = 0; t < c.tokens.size(); ++t) {
                p.tokens.push_back(c.tokens[t]);
                if (c.every || t + 1 == c.tokens.size()) p.wanted.push_back(first + static_cast<std::int32_t>(t));
            }
        }
        auto mine = decoder_->part().rows_of(static_cast<std::int64_t>(p.wanted.size()));
        p.logits.resize(static_cast<std::size_t>(mine * decoder_->spec().vocabulary));
        p.step.rows = static_cast<std::int64_t>(p.tokens.size());
        p.step.tokens = p.tokens.data();
        p.step.chunks = p.lists;
        p.step.logit_row_index = p.wanted.data();
        p.step.logit_rows = static_cast<std::int64_t>(p.wanted.size());
        p.step.writes = &p.writes;
        for (std::size_t other = 0; other < which; ++other)
            if (reads_from(all[which], all[other])) p.reads.push_back(&passes[other].writes);
        for (std::size_t other = 0; other < which; ++other)
            if (reads_from(all[other], all[which])) {
                passes[other].reads.push_back(&p.writes);
                passes[other].step.reads = passes[other].reads;
            }
        p.step.reads = p.reads;
    }

    /// Whether `pass` has a later chunk of a sequence of which `other` has an earlier one.
    static bool reads_from(std::vector<probe_chunk> const& pass, std::vector<probe_chunk> const& other)
    {
        for (auto const& c : pass)
            for (auto const& e : other)
                if (c.sequence == e.sequence && e.first_position < c.first_position) return true;
        return false;
    }

    std::unique_ptr<communicator> tensor_;
    std::int64_t pages_each_ = 0;
    std::int32_t prefix_ = 0;
    std::int32_t table_offset_ = 0;
    std::unique_ptr<ops> ops_;
    std::unique_ptr<model_weights> weights_;
    std::unique_ptr<kv_storage> kv_;
    std::unique_ptr<decoder> decoder_;
};

inline ref<model_probe> make_probe(runtime& rt, unsigned threads)
{
    auto pool = std::make_shared<host::compute_pool>(rt, threads);
    auto owned = std::make_unique<host::host_device>(pool, std::size_t(16) << 30);
    auto loop = rt.new_loop("plait-gpu-test");
    return rt.spawn_on<model_probe>(loop, std::ref(*loop), std::move(owned));
}

/// In the reference numerics, all in F32.
inline model_probe::options exactly(std::filesystem::path const& model, std::int64_t positions = 1024)
{
    model_probe::options how(model);
    how.mode = numerics::f32;
    how.kv = kv_type::f32;
    how.positions = positions;
    return how;
}

/// The logits of every token of one sequence, by a probe of its own; `at_once` of them in a pass, 0: all.
inline task<std::vector<float>> logits_of(runtime& rt, model_probe::options how, std::vector<std::int32_t> tokens,
                                          std::size_t at_once = 0, unsigned threads = 2)
{
    auto probe = make_probe(rt, threads);
    co_await ask<&model_probe::load>(probe, std::move(how));
    if (at_once == 0) at_once = tokens.size();
    std::vector<float> out;
    for (std::size_t at = 0; at < tokens.size(); at += at_once) {
        auto const first = tokens.begin() + static_cast<std::ptrdiff_t>(at);
        auto const count = static_cast<std::ptrdiff_t>(std::min(at_once, tokens.size() - at));
        std::vector<probe_chunk> chunks;
        chunks.emplace_back(0, static_cast<std::int32_t>(at), std::vector<std::int32_t>(first, first + count));
        auto const logits = co_await ask<&model_probe::run>(probe, std::move(chunks));
        out.insert(out.end(), logits.begin(), logits.end());
    }
    co_await stop(probe);
    co_return out;
}

/// A probe for each rank of tensor parallelism, rank i on devices[i].
inline std::vector<ref<model_probe>> make_probes(runtime& rt, std::vector<std::unique_ptr<device>> devices,
                                                 host::host_group_options how = {})
{
    auto group = host::make_host_group(rt, static_cast<int>(devices.size()), std::move(how));
    std::vector<ref<model_probe>> out;
    for (std::size_t i = 0; i < devices.size(); ++i) {
        auto loop = rt.new_loop("plait-gpu-test");
        out.push_back(rt.spawn_on<model_probe>(loop, std::ref(*loop), std::move(devices[i]), std::move(group[i])));
    }
    return out;
}

/// The same on host devices.
inline std::vector<ref<model_probe>> make_probes(runtime& rt, unsigned threads, std::int32_t ranks,
                                                 host::host_group_options how = {})
{
    auto pool = std::make_shared<host::compute_pool>(rt, threads);
    std::vector<std::unique_ptr<device>> devices;
    for (std::int32_t i = 0; i < ranks; ++i)
        devices.push_back(std::make_unique<host::host_device>(pool, std::size_t(1) << 30));
    return make_probes(rt, std::move(devices), std::move(how));
}

inline task<> load_probes(std::vector<ref<model_probe>> probes, model_probe::options how)
{
    std::vector<task<>> all;
    for (std::size_t i = 0; i < probes.size(); ++i) {
        how.rank = static_cast<std::int32_t>(i);
        all.push_back(ask<&model_probe::load>(probes[i], how));
    }
    co_await when_all(std::move(all));
}

/// The same passes on every rank: the logits of each.
inline task<std::vector<std::vector<float>>> run_probes(std::vector<ref<model_probe>> probes,
                                                        std::vector<std::vector<probe_chunk>> passes,
                                                        std::vector<stream_role> lanes)
{
    std::vector<task<std::vector<std::vector<float>>>> all;
    for (auto const& probe : probes)
        all.push_back(ask<&model_probe::run_woven>(probe, passes, lanes));
    auto ranks = co_await when_all(std::move(all));
    std::vector<std::vector<float>> out(passes.size());
    for (std::size_t i = 0; i < passes.size(); ++i)
        for (auto const& rank : ranks)
            out[i].insert(out[i].end(), rank[i].begin(), rank[i].end());
    co_return out;
}

inline task<> stop_probes(std::vector<ref<model_probe>> probes)
{
    for (auto const& probe : probes)
        co_await stop(probe);
}

} // namespace plait::test
