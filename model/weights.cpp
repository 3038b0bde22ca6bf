#include <algorithm>
#include <cstring>
#include <string>

#include <plait/actors/error.hpp>
#include <plait/model/weights.hpp>

namespace plait {

namespace {

/// Bytes of the file that are repacked at a time: enough for every thread, small against the weights.
constexpr std::int64_t slice_bytes = 8 << 20;

/// Rows of a matrix that make a slice: whole panels, at least one.
std::int64_t slice_rows(weight_format from, std::int64_t cols)
{
    auto row = static_cast<std::int64_t>(host::file_row_bytes(from, cols));
    return std::max<std::int64_t>(panel_rows, slice_bytes / row / panel_rows * panel_rows);
}

} // namespace

/// Walks the model in the order in which it is computed and gives each tensor its place. With no memory yet (planning)
/// the views are null and only sizes and places mean something.
struct model_weights::layout {
    tensor_source const& file;
    described_model const& model;
    numerics mode;
    shard const& part;
    std::byte* memory;

    std::size_t bytes = 0;
    std::vector<placement> placements;
    weight_view token_embedding, position_embedding, output;
    norm_weights output_norm;
    std::vector<layer_weights> layers;
    std::size_t embedding_bytes = 0, output_bytes = 0;
    std::size_t largest_slice = 0;

    std::byte const* at(std::size_t offset) const { return memory == nullptr ? nullptr : memory + offset; }

    std::size_t reserve(std::size_t size)
    {
        auto offset = bytes;
        bytes += (size + 63) / 64 * 64;
        return offset;
    }

    weight_format format_of(tensor_ref const& which) const { return file.format(file.tensor(which.name)); }

    /// Columns of the matrix that `which` is.
    std::int64_t columns_of(tensor_ref const& which) const
    {
        auto const& tensor = file.tensor(which.name);
        return which.transposed ? tensor.rows() : tensor.cols();
    }

    void place(placement p)
    {
        auto const& from = p.from_file;
        auto rows = std::min(from.rows, slice_rows(p.from, from.cols));
        largest_slice =
            std::max(largest_slice, static_cast<std::size_t>(rows) * host::file_row_bytes(p.from, from.cols));
        placements.push_back(std::move(p));
    }

    void place_vector(tensor_ref const& which, std::int64_t first, std::int64_t count, std::size_t offset)
    {
        auto const& tensor = file.tensor(which.name);
        place({&tensor, which, {first, count, 0, 1}, file.format(tensor), weight_format::f32, offset, 0, {}, true});
    }

    /// `count` values of a vector from `first` on; null where there is none.
    float const* vector(tensor_ref const& which, std::int64_t first, std::int64_t count)
    {
        if (which.empty()) return nullptr;
        auto offset = reserve(static_cast<std::size_t>(count) * sizeof(float));
        place_vector(which, first, count, offset);
        return reinterpret_cast<float const*>(at(offset));
    }

    norm_weights norm(norm_tensors const& names, std::int64_t first, std::int64_t count)
    {
        return {vector(names.weight, first, count), vector(names.bias, first, count)};
    }

    norm_weights norm(norm_tensors const& names) { return norm(names, 0, model.spec.width); }

    weight_view matrix(tensor_ref const& which, region part_of_it)
    {
        auto from = format_of(which);
        auto to = kept_as(from, mode);
        auto offset = reserve(host::packed_bytes(to, part_of_it.rows, part_of_it.cols));
        place({&file.tensor(which.name), which, part_of_it, from, to, offset, 0, {}, false});
        return {to, part_of_it.rows, part_of_it.cols, at(offset)};
    }

    /// This rank's rows of a matrix of `rows` that is divided by its outputs.
    region rows_of(tensor_ref const& which, std::int64_t rows) const
    {
        return {part.begin(rows), part.length(rows), 0, columns_of(which)};
    }

    /// A matrix of `rows` by `cols` that is divided by its inputs, in this rank's summands.
    summed_weights summed(tensor_ref const& which, std::int64_t rows, std::int64_t cols)
    {
        auto each = part.length(cols) / part.parts;
        summed_weights out;
        for (std::int32_t i = 0; i < part.parts; ++i)
            out.parts.push_back(matrix(which, {0, rows, part.begin(cols) + i * each, each}));
        return out;
    }

    /// Neighbours of one format lie in one set of panels. A part that does not end on a panel's edge takes the next one
    /// into its last panel, so that its padding is not read as outputs.
    stacked_weights stacked(std::vector<std::pair<tensor_ref, region>> const& matrices)
    {
        stacked_weights out;
        for (std::size_t i = 0; i < matrices.size();) {
            auto to = kept_as(format_of(matrices[i].first), mode);
            auto cols = matrices[i].second.cols;
            auto end = i;
            std::int64_t rows = 0;
            for (; end < matrices.size() && kept_as(format_of(matrices[end].first), mode) == to; ++end)
                rows += matrices[end].second.rows;
            auto offset = reserve(host::packed_bytes(to, rows, cols));
            out.parts.push_back({{to, rows, cols, at(offset)}, out.rows});
            out.rows += rows;
            for (std::int64_t row = 0; i < end; ++i) {
                auto const& [name, which] = matrices[i];
                place({&file.tensor(name.name), name, which, format_of(name), to, offset, row, {}, false});
                row += which.rows;
            }
        }
        return out;
    }

    /// Gate and up must share a format to share panels; where a file has them in two, both are held in F32.
    weight_format shared_format(tensor_ref const& gate, tensor_ref const& up) const
    {
        return format_of(gate) == format_of(up) ? kept_as(format_of(gate), mode) : weight_format::f32;
    }

    /// Gate and up, `which` of each, at `offset`.
    void place_gate_up(ffn_tensors const& names, region which, weight_format to, std::size_t offset)
    {
        place({&file.tensor(names.gate.name), names.gate, which, format_of(names.gate), to, offset, 0, {2, 0}, false});
        place({&file.tensor(names.up.name), names.up, which, format_of(names.up), to, offset, 0, {2, 1}, false});
    }

    ffn_weights network(ffn_tensors const& names, std::int64_t hidden)
    {
        ffn_weights out;
        auto which = rows_of(names.up, hidden);
        if (names.gate.empty()) {
            out.up = matrix(names.up, which);
        } else {
            auto to = shared_format(names.gate, names.up);
            auto offset = reserve(2 * host::packed_bytes(to, which.rows, which.cols));
            place_gate_up(names, which, to, offset);
            out.gate_up = {to, 2 * which.rows, which.cols, at(offset)};
        }
        out.gate_bias = vector(names.gate_bias, which.row, which.rows);
        out.up_bias = vector(names.up_bias, which.row, which.rows);
        out.down = summed(names.down, model.spec.width, hidden);
        out.down_bias = vector(names.down_bias, 0, model.spec.width);
        return out;
    }

    /// One vector of each of this rank's experts, one behind the other.
    float const* of_experts(layer_tensors const& names, experts_weights const& mine, tensor_ref ffn_tensors::* which,
                            std::int64_t length)
    {
        if ((names.experts.front().*which).empty()) return nullptr;
        auto offset = reserve(static_cast<std::size_t>(mine.count * length) * sizeof(float));
        for (std::int64_t i = 0; i < mine.count; ++i)
            place_vector(names.experts[static_cast<std::size_t>(mine.first + i)].*which, 0, length,
                         offset + static_cast<std::size_t>(i * length) * sizeof(float));
        return reinterpret_cast<float const*>(at(offset));
    }

    experts_weights mixture(layer_tensors const& names, experts_spec const& whole)
    {
        experts_weights out;
        auto width = model.spec.width;
        out.router = matrix(names.router, {0, whole.count, 0, width});
        out.router_bias = vector(names.router_bias, 0, whole.count);
        out.selection_bias = vector(names.selection_bias, 0, whole.count);
        out.first = part.begin(whole.count);
        out.count = part.length(whole.count);
        auto expert = [&](std::int64_t i) -> ffn_tensors const& {
            return names.experts[static_cast<std::size_t>(out.first + i)];
        };
        // One format for all of them, so that one view and a distance say where each is.
        auto up_format = shared_format(expert(0).gate, expert(0).up);
        auto down_format = kept_as(format_of(expert(0).down), mode);
        for (std::int64_t i = 1; i < out.count; ++i) {
            if (shared_format(expert(i).gate, expert(i).up) != up_format) up_format = weight_format::f32;
            if (kept_as(format_of(expert(i).down), mode) != down_format) down_format = weight_format::f32;
        }
        out.gate_up_bytes = 2 * host::packed_bytes(up_format, whole.hidden, width);
        out.down_bytes = host::packed_bytes(down_format, width, whole.hidden);
        auto up_offset = reserve(static_cast<std::size_t>(out.count) * out.gate_up_bytes);
        auto down_offset = reserve(static_cast<std::size_t>(out.count) * out.down_bytes);
        out.gate_up = {up_format, 2 * whole.hidden, width, at(up_offset)};
        out.down = {down_format, width, whole.hidden, at(down_offset)};
        for (std::int64_t i = 0; i < out.count; ++i) {
            auto n = static_cast<std::size_t>(i);
            auto const& down = expert(i).down;
            place_gate_up(expert(i), {0, whole.hidden, 0, width}, up_format, up_offset + n * out.gate_up_bytes);
            place({&file.tensor(down.name),
                   down,
                   {0, width, 0, whole.hidden},
                   format_of(down),
                   down_format,
                   down_offset + n * out.down_bytes,
                   0,
                   {},
                   false});
        }
        out.gate_bias = of_experts(names, out, &ffn_tensors::gate_bias, whole.hidden);
        out.up_bias = of_experts(names, out, &ffn_tensors::up_bias, whole.hidden);
        out.down_bias = of_experts(names, out, &ffn_tensors::down_bias, width);
        return out;
    }

    void attention(layer_tensors const& names, attention_spec const& whole, layer_weights& out)
    {
        auto queries = rows_of(names.query, whole.query_width());
        auto first_head = part.first_kv_head(whole.kv_heads), heads = part.kv_heads(whole.kv_heads);
        region kv{first_head * whole.head_dim, heads * whole.head_dim, 0, queries.cols};
        out.qkv = stacked({{names.query, queries}, {names.key, kv}, {names.value, kv}});
        if (!names.query_bias.empty()) {
            auto offset = reserve(static_cast<std::size_t>(out.qkv.rows) * sizeof(float));
            out.qkv_bias = reinterpret_cast<float const*>(at(offset));
            place_vector(names.query_bias, queries.row, queries.rows, offset);
            offset += static_cast<std::size_t>(queries.rows) * sizeof(float);
            place_vector(names.key_bias, kv.row, kv.rows, offset);
            offset += static_cast<std::size_t>(kv.rows) * sizeof(float);
            place_vector(names.value_bias, kv.row, kv.rows, offset);
        }
        if (whole.query_key_norm == head_norm::head) {
            out.query_norm = norm(names.query_norm, 0, whole.head_dim);
            out.key_norm = norm(names.key_norm, 0, whole.head_dim);
        } else if (whole.query_key_norm != head_norm::none) {
            out.query_norm = norm(names.query_norm, queries.row, queries.rows);
            out.key_norm = norm(names.key_norm, kv.row, kv.rows);
        }
        out.sinks = vector(names.sinks, part.begin(whole.heads), part.length(whole.heads));
        out.attention_out = summed(names.attention_output, model.spec.width, whole.query_width());
        out.attention_out_bias = vector(names.attention_output_bias, 0, model.spec.width);
    }

    void walk()
    {
        auto const& names = model.tensors;
        auto const& spec = model.spec;
        if (part.first()) {
            token_embedding = matrix(names.token_embedding, rows_of(names.token_embedding, spec.vocabulary));
            if (!names.position_embedding.empty())
                position_embedding = matrix(names.position_embedding, {0, spec.learned_positions, 0, spec.width});
        }
        embedding_bytes = bytes;
        for (auto i = part.first_layer; i < part.first_layer + part.layers; ++i) {
            auto const& layer = spec.layers[static_cast<std::size_t>(i)];
            auto const& at = names.layers[static_cast<std::size_t>(i)];
            layer_weights out;
            out.attention_norm = norm(at.attention_norm);
            attention(at, layer.attention, out);
            out.attention_output_norm = norm(at.attention_output_norm);
            out.ffn_norm = norm(at.ffn_norm);
            auto const& experts = layer.ffn.experts;
            if (experts.count > 0) out.experts = mixture(at, experts);
            auto hidden = experts.count > 0 ? experts.shared_hidden : layer.ffn.hidden;
            if (hidden > 0) out.ffn = network(at.ffn, hidden);
            out.ffn_output_norm = norm(at.ffn_output_norm);
            layers.push_back(std::move(out));
        }
        auto before = bytes;
        if (part.last()) {
            output_norm = norm(names.output_norm);
            auto const& name = names.output.empty() ? names.token_embedding : names.output;
            output =
                names.output.empty() && part.first() ? token_embedding : matrix(name, rows_of(name, spec.vocabulary));
        }
        output_bytes = bytes - before;
    }
};

std::vector<memory_line> model_weights::plan(tensor_source const& file, described_model const& model, numerics mode,
                                             shard const& part)
{
    layout all{file, model, mode, part, nullptr};
    all.walk();
    auto matrix = [](weight_view const& w) {
        return std::to_string(w.rows) + " × " + std::to_string(w.cols) + " in " + std::string(name(w.format));
    };
    auto summed = [&](summed_weights const& w) {
        return (w.parts.size() > 1 ? std::to_string(w.parts.size()) + " × " : "") + matrix(w.parts.front());
    };
    auto feed_forward = [&](layer_weights const& layer) {
        std::string out;
        auto const& experts = layer.experts;
        if (experts.count > 0)
            out += ", " + std::to_string(experts.count) + " experts of gate and up " + matrix(experts.gate_up) +
                   ", down " + matrix(experts.down);
        if (layer.ffn.down.parts.empty()) return out;
        if (experts.count > 0) out += "; for every token";
        out +=
            layer.ffn.gate_up.rows > 0 ? ", gate and up " + matrix(layer.ffn.gate_up) : ", up " + matrix(layer.ffn.up);
        return out + ", down " + summed(layer.ffn.down);
    };
    auto tied = model.tensors.output.empty();
    std::vector<memory_line> lines;
    if (part.first())
        lines.push_back({"token embedding",
                         matrix(all.token_embedding) + (tied && part.last() ? ", also the output" : ""),
                         static_cast<std::int64_t>(all.embedding_bytes)});
    auto const& first = all.layers.front();
    lines.push_back({"layers",
                     std::to_string(part.layers) + " layers; of the first: QKV " +
                         matrix(first.qkv.parts.front().weights) + ", output " + summed(first.attention_out) +
                         feed_forward(first),
                     static_cast<std::int64_t>(all.bytes - all.embedding_bytes - all.output_bytes)});
    if (part.last())
        lines.push_back({"output", tied && part.first() ? "norm" : "norm, " + matrix(all.output),
                         static_cast<std::int64_t>(all.output_bytes)});
    lines.push_back(
        {"loading", "a slice of the file while it is repacked", static_cast<std::int64_t>(all.largest_slice)});
    return lines;
}

model_weights::model_weights(device& where, tensor_source const& file, described_model const& model, numerics mode,
                             shard const& part)
{
    layout sizes{file, model, mode, part, nullptr};
    sizes.walk();
    memory_ = buffer(where, sizes.bytes);
    // Not from the heap: a heap that has given and taken back such blocks keeps them.
    slice_ = buffer(where, sizes.largest_slice);
    layout all{file, model, mode, part, memory_.data()};
    all.walk();
    token_embedding_ = all.token_embedding;
    first_token_ = part.begin(model.spec.vocabulary);
    position_embedding_ = all.position_embedding;
    output_ = all.output;
    output_norm_ = all.output_norm;
    layers_ = std::move(all.layers);
    placements_ = std::move(all.placements);
    for (auto const& p : placements_)
        file_bytes_ += static_cast<std::uint64_t>(p.from_file.rows) * host::file_row_bytes(p.from, p.from_file.cols);
}

/// Copies `rows` rows of a placement, from row `row` of it on, into the slice, piece by piece where they don't follow
/// each other in the file.
void model_weights::read(tensor_source const& file, placement const& p, std::int64_t row, std::int64_t rows) const
{
    if (p.where.transposed) return read_transposed(file, p, row, rows);
    auto const& tensor = *p.tensor;
    auto const& from = p.from_file;
    auto wanted = host::file_row_bytes(p.from, from.cols);
    auto* out = slice_.data();
    // A row of the tensor, or of a vector a value.
    auto line = p.vector ? wanted : host::file_row_bytes(p.from, tensor.cols());
    for (std::int64_t i = 0; i < rows;) {
        auto at = from.row + row + i;
        auto count = p.where.run == 0 ? rows - i : std::min(rows - i, p.where.run - at % p.where.run);
        auto first = static_cast<std::uint64_t>(p.where.stored(at));
        if (wanted == line) {
            file.read(tensor, first * line, {out, static_cast<std::size_t>(count) * line});
        } else {
            auto skipped = host::file_row_bytes(p.from, from.col);
            for (std::int64_t r = 0; r < count; ++r)
                file.read(tensor, (first + static_cast<std::uint64_t>(r)) * line + skipped,
                          {out + static_cast<std::size_t>(r) * wanted, wanted});
        }
        out += static_cast<std::size_t>(count) * wanted;
        i += count;
    }
}

/// The same where rows are columns of the tensor. All that lie between the first and the last one wanted are read: of
/// interleaved matrices one is every second column.
void model_weights::read_transposed(tensor_source const& file, placement const& p, std::int64_t row,
                                    std::int64_t rows) const
{
    auto const& from = p.from_file;
    auto value = host::file_row_bytes(p.from, 1);
    auto line = host::file_row_bytes(p.from, p.tensor->cols());
    auto first = p.where.stored(from.row + row);
    auto last = p.where.stored(from.row + row + rows - 1);
    std::vector<std::byte> values(static_cast<std::size_t>(last - first + 1) * value);
    auto* out = slice_.data();
    for (std::int64_t c = 0; c < from.cols; ++c) {
        auto input = static_cast<std::uint64_t>(p.where.first_input + from.col + c);
        file.read(*p.tensor, input * line + static_cast<std::uint64_t>(first) * value, values);
        for (std::int64_t r = 0; r < rows; ++r) {
            auto at = static_cast<std::size_t>(p.where.stored(from.row + row + r) - first);
            std::memcpy(out + static_cast<std::size_t>(r * from.cols + c) * value, values.data() + at * value, value);
        }
    }
}

task<double> model_weights::load_next(flow& f, ops& on, tensor_source& file)
{
    // Whoever stops waiting for an operation leaves it its memory.
    auto loading = [this](ticket t) {
        memory_.used_by(t);
        slice_.used_by(t);
    };
    std::uint64_t done = 0;
    while (next_ < placements_.size() && done < static_cast<std::uint64_t>(slice_bytes)) {
        auto const& p = placements_[next_];
        auto const& from = p.from_file;
        auto* target = memory_.data() + p.offset;
        auto step = slice_rows(p.from, from.cols);
        for (std::int64_t row = 0; row < from.rows; row += step) {
            auto rows = std::min(step, from.rows - row);
            read(file, p, row, rows);
            if (p.vector)
                on.widen(f, {p.from, rows, slice_.data(), reinterpret_cast<float*>(target) + row, p.where.plus});
            else
                on.pack(f, {p.from, p.to, rows, from.cols, slice_.data(), target, p.first_row + row, p.place});
            loading(f.last());
            co_await f;
        }
        auto bytes = static_cast<std::uint64_t>(from.rows) * host::file_row_bytes(p.from, from.cols);
        done += bytes;
        loaded_bytes_ += bytes;
        ++next_;
    }
    if (next_ < placements_.size()) co_return static_cast<double>(loaded_bytes_) / static_cast<double>(file_bytes_);
    file.check_unchanged();
    placements_ = {};
    slice_ = {};
    co_return 1.0;
}

} // namespace plait
