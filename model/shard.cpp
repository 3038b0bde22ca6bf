#include <plait/model/shard.hpp>

#include <plait/actors/error.hpp>

#include <algorithm>
#include <limits>
#include <set>
#include <string>
#include <tuple>

namespace plait {

namespace {

/// A number of the model and what is asked of it.
struct demand {
    std::string what;
    std::int64_t number;
    std::int64_t divisor;
    std::int64_t grain = 1; ///< each part is a multiple of it
    bool or_divides = false;

    bool met() const noexcept
    {
        if (or_divides && divisor % number == 0) return true;
        return number % divisor == 0 && number / divisor % grain == 0;
    }
    bool operator<(demand const& other) const noexcept
    {
        return std::tie(what, number, divisor, grain) < std::tie(other.what, other.number, other.divisor, other.grain);
    }
};

/// What a degree of tensor parallelism and a number of summands ask of a model, each number once.
std::set<demand> demands(tensor_source const& file, described_model const& model, std::int64_t tensor,
                         std::int64_t summands)
{
    auto grain = [&](tensor_ref const& at) { return columns_of_block(file.format(file.tensor(at.name))); };
    std::set<demand> out;
    for (std::size_t i = 0; i < model.spec.layers.size(); ++i) {
        auto const& layer = model.spec.layers[i];
        auto const& names = model.tensors.layers[i];
        out.insert({"heads", layer.attention.heads, tensor});
        out.insert({"KV heads", layer.attention.kv_heads, tensor, 1, true});
        auto const& experts = layer.ffn.experts;
        auto hidden = experts.count > 0 ? experts.shared_hidden : layer.ffn.hidden;
        if (hidden > 0) out.insert({"hidden features", hidden, summands, grain(names.ffn.down)});
        if (experts.count > 0) out.insert({"experts", experts.count, summands});
        // Their sum of squares would take a collective of its own.
        if (layer.attention.query_key_norm == head_norm::all_heads) out.insert({"norms over all heads", 1, tensor});
        out.insert({"attention features", layer.attention.query_width(), summands, grain(names.attention_output)});
    }
    out.insert({"vocabulary", model.spec.vocabulary, tensor});
    return out;
}

std::string list_of_degrees(tensor_source const& file, described_model const& model, std::int64_t per_rank)
{
    std::string out;
    std::int64_t most = 1;
    for (auto const& layer : model.spec.layers)
        most = std::max(most, layer.attention.heads);
    for (std::int64_t n = 1; n <= most; ++n) {
        auto all = demands(file, model, n, n * per_rank);
        if (std::ranges::all_of(all, &demand::met)) out += (out.empty() ? "" : ", ") + std::to_string(n);
    }
    return out.empty() ? "none" : out;
}

/// Weights of a layer, as numbers.
std::int64_t weights_of(model_spec const& spec, layer_spec const& layer)
{
    auto const& a = layer.attention;
    auto const& experts = layer.ffn.experts;
    auto hidden = experts.count > 0 ? experts.count * experts.hidden + experts.shared_hidden : layer.ffn.hidden;
    auto per_feature = 2 * a.query_width() + 2 * a.kv_width() + (layer.ffn.gated ? 3 : 2) * hidden;
    return spec.width * per_feature;
}

} // namespace

void check(parallelism const& how, tensor_source const& file, described_model const& model)
{
    auto refuse = [](std::string const& why) { throw error(errc::invalid_argument, why); };
    if (how.tensor < 1) refuse("tensor parallelism of " + std::to_string(how.tensor));
    if (how.pipeline < 1) refuse("pipeline parallelism of " + std::to_string(how.pipeline));
    if (how.sum_parts < 0) refuse("sums of " + std::to_string(how.sum_parts) + " parts");
    auto summands = std::int64_t{how.summands()};
    if (summands % how.tensor != 0)
        refuse("sums of " + std::to_string(summands) + " parts on " + std::to_string(how.tensor) + " ranks");
    if (how.pipeline > static_cast<std::int64_t>(model.spec.layers.size()))
        refuse("pipeline parallelism of " + std::to_string(how.pipeline) + ": the model has " +
               std::to_string(model.spec.layers.size()) + " layers");
    std::string obstacles;
    for (auto const& d : demands(file, model, how.tensor, summands)) {
        if (d.met()) continue;
        obstacles += (obstacles.empty() ? "" : ", ") + d.what + " " + std::to_string(d.number);
        if (d.grain > 1) obstacles += " in blocks of " + std::to_string(d.grain);
    }
    if (obstacles.empty()) return;
    auto per_rank = summands / how.tensor;
    std::string what = "tensor parallelism of " + std::to_string(how.tensor);
    if (per_rank > 1) what += " with sums of " + std::to_string(summands) + " parts";
    refuse(what + " does not divide " + obstacles + "; degrees that do" +
           (per_rank > 1 ? " with " + std::to_string(per_rank) + " parts each: " : ": ") +
           list_of_degrees(file, model, per_rank));
}

std::vector<shard> divide(parallelism const& how, model_spec const& spec)
{
    auto layers = static_cast<std::int64_t>(spec.layers.size());
    auto stages = std::int64_t{how.pipeline};
    std::vector<std::int64_t> before{0}; // weights of the layers before each
    for (auto const& layer : spec.layers)
        before.push_back(before.back() + weights_of(spec, layer));
    auto output = spec.width * spec.vocabulary;

    // heaviest[s][n]: of the first n layers on s + 1 stages, the weights of the heaviest stage; cut[s][n]: the first
    // layer of its last stage.
    constexpr auto never = std::numeric_limits<std::int64_t>::max();
    auto row = std::vector<std::int64_t>(static_cast<std::size_t>(layers) + 1, never);
    std::vector heaviest(static_cast<std::size_t>(stages), row), cut(static_cast<std::size_t>(stages), row);
    for (std::int64_t s = 0; s < stages; ++s) {
        auto at = static_cast<std::size_t>(s);
        for (auto n = s + 1; n <= layers; ++n) {
            auto last = static_cast<std::size_t>(n);
            for (auto first = s == 0 ? 0 : s; first < (s == 0 ? 1 : n); ++first) {
                auto from = static_cast<std::size_t>(first);
                auto mine = before[last] - before[from] + (s + 1 == stages ? output : 0);
                auto most = s == 0 ? mine : std::max(mine, heaviest[at - 1][from]);
                if (most < heaviest[at][last]) {
                    heaviest[at][last] = most;
                    cut[at][last] = first;
                }
            }
        }
    }
    std::vector<std::int64_t> first(static_cast<std::size_t>(stages) + 1, layers);
    for (auto s = stages; s-- > 0;)
        first[static_cast<std::size_t>(s)] =
            cut[static_cast<std::size_t>(s)][static_cast<std::size_t>(first[static_cast<std::size_t>(s) + 1])];

    std::vector<shard> out;
    for (std::int32_t stage = 0; stage < how.pipeline; ++stage)
        for (std::int32_t rank = 0; rank < how.tensor; ++rank) {
            shard part;
            part.rank = rank;
            part.ranks = how.tensor;
            part.stage = stage;
            part.stages = how.pipeline;
            part.first_layer = first[static_cast<std::size_t>(stage)];
            part.layers = first[static_cast<std::size_t>(stage) + 1] - part.first_layer;
            part.parts = how.summands() / how.tensor;
            out.push_back(part);
        }
    return out;
}

model_spec part_of(model_spec const& spec, shard const& part)
{
    auto out = spec;
    auto begin = spec.layers.begin() + part.first_layer;
    out.layers.assign(begin, begin + part.layers);
    for (auto& layer : out.layers) {
        auto& a = layer.attention;
        a.heads = part.length(a.heads);
        a.kv_heads = part.kv_heads(a.kv_heads);
        layer.ffn.hidden = part.length(layer.ffn.hidden);
        layer.ffn.experts.shared_hidden = part.length(layer.ffn.experts.shared_hidden);
    }
    return out;
}

} // namespace plait
