#include <algorithm>
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
    weight_view token_embedding, output;
    float const* output_norm = nullptr;
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

    weight_format format_of(std::string const& name) const { return file.format(file.tensor(name)); }

    float const* vector(std::string const& name)
    {
        auto const& tensor = file.tensor(name);
        auto offset = reserve(static_cast<std::size_t>(tensor.cols()) * sizeof(float));
        place({&tensor, {0, 1, 0, tensor.cols()}, file.format(tensor), weight_format::f32, offset, 0, {}, true});
        return reinterpret_cast<float const*>(at(offset));
    }

    void place(placement const& p)
    {
        auto const& from = p.from_file;
        auto rows = std::min(from.rows, slice_rows(p.from, from.cols));
        largest_slice =
            std::max(largest_slice, static_cast<std::size_t>(rows) * host::file_row_bytes(p.from, from.cols));
        placements.push_back(p);
    }

    weight_view matrix(std::string const& name, region which)
    {
        auto const& tensor = file.tensor(name);
        auto to = kept_as(file.format(tensor), mode);
        auto offset = reserve(host::packed_bytes(to, which.rows, which.cols));
        place({&tensor, which, file.format(tensor), to, offset, 0, {}, false});
        return {to, which.rows, which.cols, at(offset)};
    }

    /// This rank's rows of a matrix that is divided by its outputs.
    region rows_of(std::string const& name) const
    {
        auto const& tensor = file.tensor(name);
        return {part.begin(tensor.rows()), part.length(tensor.rows()), 0, tensor.cols()};
    }

    /// A matrix that is divided by its inputs, in this rank's summands.
    summed_weights summed(std::string const& name)
    {
        auto const& tensor = file.tensor(name);
        auto cols = part.length(tensor.cols()) / part.parts;
        summed_weights out;
        for (std::int32_t i = 0; i < part.parts; ++i)
            out.parts.push_back(matrix(name, {0, tensor.rows(), part.begin(tensor.cols()) + i * cols, cols}));
        return out;
    }

    /// Neighbours of one format lie in one set of panels. A part that does not end on a panel's edge takes the next one
    /// into its last panel, so that its padding is not read as outputs.
    stacked_weights stacked(std::vector<std::pair<std::string, region>> const& matrices)
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
                auto const& tensor = file.tensor(name);
                place({&tensor, which, file.format(tensor), to, offset, row, {}, false});
                row += which.rows;
            }
        }
        return out;
    }

    /// Gate and up must share a format to share panels; where a file has them in two, both are held in F32.
    weight_view gate_and_up(std::string const& gate, std::string const& up)
    {
        auto const& first = file.tensor(gate);
        auto const& second = file.tensor(up);
        auto to = file.format(first) == file.format(second) ? kept_as(file.format(first), mode) : weight_format::f32;
        auto which = rows_of(gate);
        auto offset = reserve(2 * host::packed_bytes(to, which.rows, which.cols));
        place({&first, which, file.format(first), to, offset, 0, {2, 0}, false});
        place({&second, which, file.format(second), to, offset, 0, {2, 1}, false});
        return {to, 2 * which.rows, which.cols, at(offset)};
    }

    stacked_weights queries_keys_values(layer_tensors const& names, attention_spec const& whole)
    {
        auto queries = rows_of(names.query);
        region kv{part.first_kv_head(whole.kv_heads) * whole.head_dim, part.kv_heads(whole.kv_heads) * whole.head_dim,
                  0, queries.cols};
        return stacked({{names.query, queries}, {names.key, kv}, {names.value, kv}});
    }

    void walk()
    {
        auto const& names = model.tensors;
        if (part.first()) token_embedding = matrix(names.token_embedding, rows_of(names.token_embedding));
        embedding_bytes = bytes;
        for (auto i = part.first_layer; i < part.first_layer + part.layers; ++i) {
            auto const& layer = names.layers[static_cast<std::size_t>(i)];
            layer_weights out;
            out.attention_norm = vector(layer.attention_norm);
            out.qkv = queries_keys_values(layer, model.spec.layers[static_cast<std::size_t>(i)].attention);
            out.attention_out = summed(layer.attention_output);
            out.ffn_norm = vector(layer.ffn_norm);
            out.gate_up = gate_and_up(layer.gate, layer.up);
            out.down = summed(layer.down);
            layers.push_back(std::move(out));
        }
        auto before = bytes;
        if (part.last()) {
            output_norm = vector(names.output_norm);
            auto const& name = names.output.empty() ? names.token_embedding : names.output;
            output = names.output.empty() && part.first() ? token_embedding : matrix(name, rows_of(name));
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
                         ", gate and up " + matrix(first.gate_up) + ", down " + summed(first.down),
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
    output_ = all.output;
    output_norm_ = all.output_norm;
    layers_ = std::move(all.layers);
    placements_ = std::move(all.placements);
    for (auto const& p : placements_)
        file_bytes_ += static_cast<std::uint64_t>(p.from_file.rows) * host::file_row_bytes(p.from, p.from_file.cols);
}

/// Copies `rows` rows of a placement, from row `row` of it on, into the slice. Read, not mapped: a file that is cut
/// short meanwhile is an error here, not a signal.
void model_weights::read(tensor_source const& file, placement const& p, std::int64_t row, std::int64_t rows) const
{
    auto const& tensor = *p.tensor;
    auto const& from = p.from_file;
    auto line = static_cast<std::uint64_t>(host::file_row_bytes(p.from, tensor.cols()));
    auto wanted = host::file_row_bytes(p.from, from.cols);
    auto first = static_cast<std::uint64_t>(from.row + row) * line + host::file_row_bytes(p.from, from.col);
    if (wanted == line) {
        file.read(tensor, first, {slice_.data(), static_cast<std::size_t>(rows) * wanted});
        return;
    }
    for (std::int64_t i = 0; i < rows; ++i)
        file.read(tensor, first + static_cast<std::uint64_t>(i) * line,
                  {slice_.data() + static_cast<std::size_t>(i) * wanted, wanted});
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
                on.widen(f, {p.from, from.cols, slice_.data(), reinterpret_cast<float*>(target)});
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
