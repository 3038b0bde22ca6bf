#include <algorithm>
#include <string>
#include <utility>

#include <plait/model/rotary_tables.hpp>

namespace plait {

namespace {

/// Each half of a head is rotated like a head of its own.
std::int64_t rotated_dims(rope_spec const& rope)
{
    return rope.style == rope_style::two_halves ? rope.dims / 2 : rope.dims;
}

std::vector<double> inverse_frequencies(rope_spec const& rope, std::vector<float> const& factors)
{
    auto out = host::rope_frequencies(rotated_dims(rope), rope.base);
    for (std::size_t i = 0; i < out.size(); ++i) {
        out[i] /= rope.linear_scale;
        if (!factors.empty()) out[i] /= factors[i];
    }
    return out;
}

host::rope_table table_of(rope_spec const& rope, std::int64_t positions)
{
    if (rope.style == rope_style::none) return {};
    host::rope_table out(inverse_frequencies(rope, rope.factors), positions, rope.magnitude);
    if (!rope.long_factors.empty()) out.append(inverse_frequencies(rope, rope.long_factors), positions, rope.magnitude);
    return out;
}

std::int64_t table_bytes(rope_spec const& rope, std::int64_t positions)
{
    if (rope.style == rope_style::none) return 0;
    auto tables = rope.long_factors.empty() ? 1 : 2;
    return positions * tables * rotated_dims(rope) * static_cast<std::int64_t>(sizeof(float));
}

/// The distinct rotations of a model, and which of them each layer has.
std::pair<std::vector<rope_spec>, std::vector<std::size_t>> rotations(model_spec const& spec)
{
    std::vector<rope_spec> distinct;
    std::vector<std::size_t> of_layer;
    for (auto const& layer : spec.layers) {
        auto const& rope = layer.attention.rope;
        auto found = std::ranges::find(distinct, rope);
        if (found == distinct.end()) found = distinct.insert(found, rope);
        of_layer.push_back(static_cast<std::size_t>(found - distinct.begin()));
    }
    return {std::move(distinct), std::move(of_layer)};
}

} // namespace

memory_line rotary_tables::plan(model_spec const& spec, std::int64_t positions)
{
    std::int64_t bytes = 0;
    for (auto const& rope : rotations(spec).first)
        bytes += table_bytes(rope, positions);
    return {"rotary angles", std::to_string(positions) + " positions", bytes};
}

rotary_tables::rotary_tables(model_spec const& spec, std::int64_t positions)
{
    auto [distinct, of_layer] = rotations(spec);
    tables_.reserve(distinct.size());
    for (auto const& rope : distinct)
        tables_.push_back(table_of(rope, positions));
    of_layer_ = std::move(of_layer);
}

} // namespace plait
