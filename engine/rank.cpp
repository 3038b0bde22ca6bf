#include <plait/engine/rank.hpp>
#include <plait/model/kv_layers.hpp>

namespace plait {

void rank::prepare(rank_options const& options)
{
    file_ = gguf_file::open(options.model);
    auto model = describe(*file_);
    ops_ = make_host_ops(options.instruction_set);
    sampler_ = make_host_sampler(options.instruction_set, options.slots);
    weights_ = std::make_unique<model_weights>(dev(), *file_, model, options.mode);
    kv_ = std::make_unique<kv_storage>(dev(), kv_geometry_of(model.spec, options.kv), options.pages);
    decoder_ = std::make_unique<decoder>(dev(), model.spec, options.limits, *weights_, *kv_);
    for (auto const& group : kv_->geometry().groups) {
        auto& layers = layers_of_group_.emplace_back();
        for (auto layer : group.layers)
            layers.push_back(kv_->layer(layer));
    }
}

task<double> rank::load_next()
{
    auto done = co_await weights_->load_next(flow_on(stream_role::compute), *ops_, *file_);
    if (done >= 1) file_.reset();
    co_return done;
}

task<step_result> rank::run(step_batch batch)
{
    // From here to the first await everything is put on the stream in one turn, so steps never mix. What the operations
    // point to lives in this frame, which stays until their ticket has passed.
    auto f = flow_on(stream_role::compute);
    auto rows = static_cast<std::int64_t>(batch.tokens.size());
    auto draws = batch.draws.size();
    step_result result;
    result.tokens.resize(draws);
    result.logprobs.resize(draws);
    result.top.resize(draws * static_cast<std::size_t>(batch.top_logprobs));
    std::vector<std::int32_t> tokens(batch.tokens.size());
    std::vector<std::vector<sequence_chunk>> chunks(batch.groups.size());

    for (auto const& start : batch.starts)
        sampler_->start(start.slot, start.params, {batch.seen.data() + start.seen_first, start.seen_count},
                        {batch.biases.data() + start.bias_first, start.bias_count});
    for (std::size_t g = 0; g < batch.groups.size(); ++g) {
        auto const& group = batch.groups[g];
        for (std::size_t i = 0; i < batch.chunks.size(); ++i) {
            auto const& chunk = batch.chunks[i];
            chunks[g].push_back(
                {chunk.first_row, chunk.rows, chunk.first_position, group.pages.data() + group.first[i]});
        }
        if (!group.copies.empty()) ops_->copy_pages(f, {layers_of_group_[g], group.copies});
    }
    ops_->gather_tokens(f, {batch.tokens.data(), rows, sampler_->newest(), tokens.data()});
    decoder_step step;
    step.rows = rows;
    step.tokens = tokens.data();
    step.chunks = chunks;
    step.logit_row_index = batch.logit_rows.data();
    step.logit_rows = static_cast<std::int64_t>(draws);
    auto* logits = decoder_->forward(f, *ops_, step);
    if (draws > 0)
        sampler_->draw(f, {logits, decoder_->spec().vocabulary, batch.draws, result.tokens.data(),
                           result.logprobs.data(), result.top.data(), batch.top_logprobs});
    co_await f;
    co_return result;
}

} // namespace plait
