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

weight_format packed_format(weight_format file, numerics mode)
{
    return mode == numerics::f32 ? weight_format::f32 : file;
}

} // namespace

/// Walks the model in the order in which it is computed and gives each tensor its place. With no memory yet (planning)
/// the views are null and only sizes and places mean something.
struct model_weights::layout {
    gguf_file const& file;
    described_model const& model;
    numerics mode;
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
        place({&tensor, file.format(tensor), weight_format::f32, offset, 0, {}, true});
        return reinterpret_cast<float const*>(at(offset));
    }

    void place(placement const& p)
    {
        auto rows = p.vector ? 1 : std::min(p.tensor->rows(), slice_rows(p.from, p.tensor->cols()));
        largest_slice =
            std::max(largest_slice, static_cast<std::size_t>(rows) * host::file_row_bytes(p.from, p.tensor->cols()));
        placements.push_back(p);
    }

    weight_view matrix(std::string const& name)
    {
        auto const& tensor = file.tensor(name);
        auto to = packed_format(file.format(tensor), mode);
        auto offset = reserve(host::packed_bytes(to, tensor.rows(), tensor.cols()));
        place({&tensor, file.format(tensor), to, offset, 0, {}, false});
        return {to, tensor.rows(), tensor.cols(), at(offset)};
    }

    /// Neighbours of one format lie in one set of panels. A part that does not end on a panel's edge takes the next one
    /// into its last panel, so that its padding is not read as outputs.
    stacked_weights stacked(std::vector<std::string> const& names)
    {
        stacked_weights out;
        for (std::size_t i = 0; i < names.size();) {
            auto to = packed_format(format_of(names[i]), mode);
            auto cols = file.tensor(names[i]).cols();
            auto end = i;
            std::int64_t rows = 0;
            for (; end < names.size() && packed_format(format_of(names[end]), mode) == to; ++end)
                rows += file.tensor(names[end]).rows();
            auto offset = reserve(host::packed_bytes(to, rows, cols));
            out.parts.push_back({{to, rows, cols, at(offset)}, out.rows});
            out.rows += rows;
            for (std::int64_t row = 0; i < end; ++i) {
                auto const& tensor = file.tensor(names[i]);
                place({&tensor, file.format(tensor), to, offset, row, {}, false});
                row += tensor.rows();
            }
        }
        return out;
    }

    /// Gate and up must share a format to share panels; where a file has them in two, both are held in F32.
    weight_view gate_and_up(std::string const& gate, std::string const& up)
    {
        auto const& first = file.tensor(gate);
        auto const& second = file.tensor(up);
        auto to =
            file.format(first) == file.format(second) ? packed_format(file.format(first), mode) : weight_format::f32;
        auto offset = reserve(2 * host::packed_bytes(to, first.rows(), first.cols()));
        place({&first, file.format(first), to, offset, 0, {2, 0}, false});
        place({&second, file.format(second), to, offset, 0, {2, 1}, false});
        return {to, 2 * first.rows(), first.cols(), at(offset)};
    }

    void walk()
    {
        auto const& names = model.tensors;
        token_embedding = matrix(names.token_embedding);
        embedding_bytes = bytes;
        for (auto const& layer : names.layers) {
            layer_weights out;
            out.attention_norm = vector(layer.attention_norm);
            out.qkv = stacked({layer.query, layer.key, layer.value});
            out.attention_out = matrix(layer.attention_output);
            out.ffn_norm = vector(layer.ffn_norm);
            out.gate_up = gate_and_up(layer.gate, layer.up);
            out.down = matrix(layer.down);
            layers.push_back(std::move(out));
        }
        auto before = bytes;
        output_norm = vector(names.output_norm);
        output = names.output.empty() ? token_embedding : matrix(names.output);
        output_bytes = bytes - before;
    }
};

std::vector<memory_line> model_weights::plan(gguf_file const& file, described_model const& model, numerics mode)
{
    layout all{file, model, mode, nullptr};
    all.walk();
    auto const& spec = model.spec;
    auto matrix = [](weight_view const& w) {
        return std::to_string(w.rows) + " × " + std::to_string(w.cols) + " in " + std::string(name(w.format));
    };
    std::vector<memory_line> lines;
    lines.push_back({"token embedding",
                     matrix(all.token_embedding) + (model.tensors.output.empty() ? ", also the output" : ""),
                     static_cast<std::int64_t>(all.embedding_bytes)});
    auto const& first = all.layers.front();
    lines.push_back({"layers",
                     std::to_string(spec.layers.size()) + " layers; of the first: QKV " +
                         matrix(first.qkv.parts.front().weights) + ", output " + matrix(first.attention_out) +
                         ", gate and up " + matrix(first.gate_up) + ", down " + matrix(first.down),
                     static_cast<std::int64_t>(all.bytes - all.embedding_bytes - all.output_bytes)});
    lines.push_back({"output", model.tensors.output.empty() ? "norm" : "norm, " + matrix(all.output),
                     static_cast<std::int64_t>(all.output_bytes)});
    lines.push_back(
        {"loading", "a slice of the file while it is repacked", static_cast<std::int64_t>(all.largest_slice)});
    return lines;
}

model_weights::model_weights(device& where, gguf_file const& file, described_model const& model, numerics mode)
{
    layout sizes{file, model, mode, nullptr};
    sizes.walk();
    memory_ = buffer(where, sizes.bytes);
    // Not from the heap: a heap that has given and taken back such blocks keeps them.
    slice_ = buffer(where, sizes.largest_slice);
    layout all{file, model, mode, memory_.data()};
    all.walk();
    token_embedding_ = all.token_embedding;
    output_ = all.output;
    output_norm_ = all.output_norm;
    layers_ = std::move(all.layers);
    placements_ = std::move(all.placements);
    for (auto const& placement : placements_)
        file_bytes_ += placement.tensor->bytes;
}

task<double> model_weights::load_next(flow f, ops& on, gguf_file& file)
{
    // Whoever stops waiting for an operation leaves it its memory.
    auto loading = [this](ticket t) {
        memory_.used_by(t);
        slice_.used_by(t);
    };
    std::uint64_t done = 0;
    while (next_ < placements_.size() && done < static_cast<std::uint64_t>(slice_bytes)) {
        auto const& p = placements_[next_];
        auto const& tensor = *p.tensor;
        auto* target = memory_.data() + p.offset;
        if (p.vector) {
            file.read(tensor, 0, {slice_.data(), static_cast<std::size_t>(tensor.bytes)});
            on.widen(f, {p.from, tensor.cols(), slice_.data(), reinterpret_cast<float*>(target)});
            loading(f.last());
            co_await f;
        } else {
            auto row_bytes = static_cast<std::int64_t>(host::file_row_bytes(p.from, tensor.cols()));
            auto step = slice_rows(p.from, tensor.cols());
            for (std::int64_t row = 0; row < tensor.rows(); row += step) {
                auto rows = std::min(step, tensor.rows() - row);
                // Read, not mapped: a file that is cut short meanwhile is an error here, not a signal.
                file.read(tensor, static_cast<std::uint64_t>(row * row_bytes),
                          {slice_.data(), static_cast<std::size_t>(rows * row_bytes)});
                on.pack(f, {p.from, p.to, rows, tensor.cols(), slice_.data(), target, p.first_row + row, p.place});
                loading(f.last());
                co_await f;
            }
        }
        done += tensor.bytes;
        loaded_bytes_ += tensor.bytes;
        ++next_;
    }
    if (next_ < placements_.size()) co_return static_cast<double>(loaded_bytes_) / static_cast<double>(file_bytes_);
    file.check_unchanged();
    placements_ = {};
    slice_ = {};
    co_return 1.0;
}

} // namespace plait
