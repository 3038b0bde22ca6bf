#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include <plait/actors/runtime.hpp>
#include <plait/engine/rank.hpp>
#include <plait/model/kv_layers.hpp>
#include <plait/streams/host/host_device.hpp>

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
        kv_type kv = kv_type::f16;
        host::isa set = host::best_isa();
        std::int64_t sequences = 8;
        std::int64_t positions = 1024;
        std::function<void(model_spec&)> change; ///< the specification, before it is run
    };

    model_probe(event_loop& home, std::unique_ptr<device> owned)
        : gpu(home, std::move(owned))
    {
    }

    task<> load(options how)
    {
        auto file = gguf_file::open(how.model);
        auto model = describe(file);
        if (how.change) how.change(model.spec);
        pages_each_ = pages_of(how.positions);
        ops_ = make_host_ops(how.set);
        weights_ = std::make_unique<model_weights>(dev(), file, model, how.mode);
        kv_ = std::make_unique<kv_storage>(dev(), kv_geometry_of(model.spec, how.kv), pages_each_ * how.sequences);
        decoder_ = std::make_unique<decoder>(dev(), model.spec, step_limits{512, 512, how.positions}, *weights_, *kv_);
        for (double part = 0; part < 1;)
            part = co_await weights_->load_next(flow_on(stream_role::compute), *ops_, file);
    }

    /// Runs the chunks in one step; the logits asked for, row after row.
    task<std::vector<float>> run(std::vector<probe_chunk> chunks)
    {
        std::vector<std::int32_t> tokens, wanted;
        std::vector<std::vector<sequence_chunk>> lists(kv_->geometry().groups.size());
        std::vector<std::vector<std::int32_t>> pages;
        for (auto const& c : chunks) {
            auto& own = pages.emplace_back();
            for (std::int64_t p = 0; p < pages_each_; ++p)
                own.push_back(static_cast<std::int32_t>(c.sequence * pages_each_ + p));
        }
        for (std::size_t i = 0; i < chunks.size(); ++i) {
            auto const& c = chunks[i];
            auto first = static_cast<std::int32_t>(tokens.size());
            for (auto& list : lists)
                list.push_back({first, static_cast<std::int32_t>(c.tokens.size()), c.first_position, pages[i].data()});
            for (std::size_t t = 0; t < c.tokens.size(); ++t) {
                tokens.push_back(c.tokens[t]);
                if (c.every || t + 1 == c.tokens.size()) wanted.push_back(first + static_cast<std::int32_t>(t));
            }
        }
        decoder_step step;
        step.rows = static_cast<std::int64_t>(tokens.size());
        step.tokens = tokens.data();
        step.chunks = lists;
        step.logit_row_index = wanted.data();
        step.logit_rows = static_cast<std::int64_t>(wanted.size());
        auto f = flow_on(stream_role::compute);
        auto* logits = decoder_->forward(f, *ops_, step);
        co_await f;
        co_return std::vector<float>(logits,
                                     logits + wanted.size() * static_cast<std::size_t>(decoder_->spec().vocabulary));
    }

    std::int64_t vocabulary() const { return decoder_->spec().vocabulary; }

private:
    std::int64_t pages_each_ = 0;
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

} // namespace plait::test
