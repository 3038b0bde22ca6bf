#include <plait/model/convert/convert.hpp>

#include <plait/actors/error.hpp>
#include <plait/kernels/host/pack.hpp>
#include <plait/model/convert/gguf_plan.hpp>
#include <plait/model/convert/row_codec.hpp>
#include <plait/model/convert/vocabulary_of.hpp>
#include <plait/model/files/gguf_writer.hpp>
#include <plait/model/text/hub_tokenizer.hpp>

#include <algorithm>
#include <cstring>
#include <system_error>
#include <utility>
#include <vector>

namespace plait {
namespace {

/// Values that are held at a time.
constexpr std::int64_t piece_values = 1 << 20;

/// `general.file_type`: what most matrices are. Source: llama.cpp's llama_ftype.
std::optional<std::uint32_t> file_type(ggml_type type)
{
    switch (type) {
    case ggml_type::f32:
        return 0;
    case ggml_type::f16:
        return 1;
    case ggml_type::q4_0:
        return 2;
    case ggml_type::q4_1:
        return 3;
    case ggml_type::q8_0:
        return 7;
    case ggml_type::bf16:
        return 32;
    case ggml_type::mxfp4:
        return 38;
    default:
        return std::nullopt;
    }
}

/// Reads the rows of a planned tensor, in its order.
class row_source {
public:
    row_source(tensor_source const& files, planned_tensor const& of)
        : files_(files)
        , of_(of)
        , cols_(of.vector ? 1 : of.dims.front())
    {
    }

    /// The one stored type of all parts, or none where there are several.
    std::optional<ggml_type> type() const
    {
        auto const of = files_.tensor(of_.parts.front().from.name).type;
        for (auto const& part : of_.parts)
            if (files_.tensor(part.from.name).type != of) return std::nullopt;
        return of;
    }

    /// Whether rows can be copied without looking at their values.
    bool plain() const
    {
        return std::ranges::none_of(
            of_.parts, [](planned_tensor::part const& p) { return p.from.transposed || p.from.plus != 0; });
    }

    std::int64_t columns() const noexcept { return cols_; }

    /// Calls `take` with the stored bytes of one row after the other, of each part in turn.
    template<class Take>
    void bytes(Take take)
    {
        for (auto const& part : of_.parts) {
            auto const& tensor = files_.tensor(part.from.name);
            auto const line = row_codec::row_bytes(tensor.type, cols_);
            each_run(part, line, [&](std::int64_t row, std::int64_t count) {
                buffer_.resize(static_cast<std::size_t>(count) * line);
                files_.read(tensor, static_cast<std::uint64_t>(row) * line, buffer_);
                take(std::span<std::byte const>(buffer_));
            });
        }
    }

    /// The same with values.
    template<class Take>
    void values(Take take)
    {
        for (auto const& part : of_.parts) {
            auto const& tensor = files_.tensor(part.from.name);
            auto const format = files_.format(tensor);
            if (part.from.transposed) {
                transposed(part, tensor, format, take);
                continue;
            }
            auto const line = host::file_row_bytes(format, cols_);
            each_run(part, line, [&](std::int64_t row, std::int64_t count) {
                buffer_.resize(static_cast<std::size_t>(count) * line);
                files_.read(tensor, static_cast<std::uint64_t>(row) * line, buffer_);
                values_.resize(static_cast<std::size_t>(count * cols_));
                codec_.decode(format, count, cols_, buffer_.data(), values_.data());
                for (float& value : values_)
                    value += part.from.plus;
                take(std::span<float const>(values_));
            });
        }
    }

private:
    /// Stored rows that follow each other, as many as a piece has room for.
    template<class Visit>
    void each_run(planned_tensor::part const& part, std::size_t line, Visit visit) const
    {
        auto const most = std::max<std::int64_t>(1, piece_values * 4 / static_cast<std::int64_t>(line));
        for (std::int64_t r = 0; r < part.rows;) {
            auto const first = part.from.stored(part.source(r));
            std::int64_t count = 1;
            while (count < most && r + count < part.rows && part.from.stored(part.source(r + count)) == first + count)
                ++count;
            visit(first, count);
            r += count;
        }
    }

    /// Columns of the tensor become rows. A band of them is read at a time, with the few between them that are not
    /// asked for.
    template<class Take>
    void transposed(planned_tensor::part const& part, stored_tensor const& tensor, weight_format format, Take take)
    {
        auto const stored_cols = tensor.cols();
        auto const value = host::file_row_bytes(format, 1);
        auto const band = std::max<std::int64_t>(1, piece_values / cols_);
        std::vector<float> column;
        std::vector<std::int64_t> places; // of the rows, from the first one's column
        places.reserve(static_cast<std::size_t>(std::min(band, part.rows)));
        for (std::int64_t r = 0; r < part.rows;) {
            auto const first = part.from.stored(part.source(r));
            std::int64_t length = 0;
            places.clear();
            for (; r < part.rows && static_cast<std::int64_t>(places.size()) < band; ++r) {
                auto const place = part.from.stored(part.source(r)) - first;
                if (place < 0 || place >= 2 * band) break;
                places.push_back(place);
                length = std::max(length, place + 1);
            }
            values_.resize(places.size() * static_cast<std::size_t>(cols_));
            buffer_.resize(static_cast<std::size_t>(length) * value);
            column.resize(static_cast<std::size_t>(length));
            for (std::int64_t c = 0; c < cols_; ++c) {
                auto const row = part.from.first_input + c;
                files_.read(tensor, static_cast<std::uint64_t>(row * stored_cols + first) * value, buffer_);
                codec_.decode(format, length, 1, buffer_.data(), column.data());
                for (std::size_t i = 0; i < places.size(); ++i)
                    values_[i * static_cast<std::size_t>(cols_) + static_cast<std::size_t>(c)] =
                        column[static_cast<std::size_t>(places[i])] + part.from.plus;
            }
            take(std::span<float const>(values_));
        }
    }

    tensor_source const& files_;
    planned_tensor const& of_;
    std::int64_t cols_;
    row_codec codec_;
    std::vector<std::byte> buffer_;
    std::vector<float> values_;
};

/// The type that a planned tensor gets.
ggml_type type_of(tensor_source const& files, planned_tensor const& tensor, std::optional<ggml_type> asked)
{
    if (tensor.vector) return ggml_type::f32;
    auto const stored = row_source(files, tensor).type();
    if (tensor.as_it_is) return *stored;
    if (!asked) return stored.value_or(ggml_type::f32);
    return tensor.dims.front() % layout(*asked).block == 0 ? *asked : ggml_type::f16;
}

void copy_tensor(gguf_writer& to, tensor_source const& files, stored_tensor const& tensor)
{
    std::vector<std::byte> buffer;
    for (std::uint64_t at = 0; at < tensor.bytes; at += buffer.size()) {
        buffer.resize(static_cast<std::size_t>(std::min<std::uint64_t>(tensor.bytes - at, 4 * piece_values)));
        files.read(tensor, at, buffer);
        to.write(buffer);
    }
}

void write_tensor(gguf_writer& to, tensor_source const& files, planned_tensor const& tensor, ggml_type type)
{
    if (!tensor.values.empty()) {
        to.write(std::as_bytes(std::span(tensor.values)));
        return;
    }
    if (tensor.as_it_is) return copy_tensor(to, files, files.tensor(tensor.parts.front().from.name));
    row_source from(files, tensor);
    if (from.plain() && from.type() == type) {
        from.bytes([&](std::span<std::byte const> rows) { to.write(rows); });
        return;
    }
    std::vector<std::byte> encoded;
    from.values([&](std::span<float const> values) {
        auto const rows = values.size() / static_cast<std::size_t>(from.columns());
        encoded.resize(rows * row_codec::row_bytes(type, from.columns()));
        row_codec::encode(type, from.columns(), values, encoded.data());
        to.write(encoded);
    });
}

/// What must not differ: all but names, and the order of a head's rows, which the rotation follows.
model_spec comparable(model_spec spec)
{
    spec.architecture.clear();
    spec.name.clear();
    spec.fingerprint = 0;
    for (auto& layer : spec.layers)
        if (layer.attention.rope.style == rope_style::pairs) layer.attention.rope.style = rope_style::halves;
    return spec;
}

void prove(std::filesystem::path const& written, std::filesystem::path const& out, model_spec const& expected)
{
    auto const found = comparable(describe(gguf_file::open(written)).spec);
    auto const wanted = comparable(expected);
    if (found == wanted) return;
    throw error(errc::unsupported, out.string() + ": a GGUF file would not say all of this model. It is\n" +
                                       to_string(wanted) + "\nand would be read as\n" + to_string(found));
}

void refuse_overwriting(model_files const& files, std::filesystem::path const& out)
{
    std::error_code ignored;
    bool const same = std::filesystem::equivalent(files.source(), out, ignored);
    if (same || std::filesystem::is_directory(out, ignored))
        throw error(errc::invalid_argument, out.string() + ": is " + (same ? "the model itself" : "a folder"));
}

} // namespace

converted convert(std::filesystem::path const& in, std::filesystem::path const& out, convert_options const& options,
                  std::function<void(double)> const& report)
{
    if (options.type && !row_codec::can_encode(*options.type))
        throw error(errc::unsupported, "type: " + std::string(layout(*options.type).name) + " is not written");
    auto const files = open_model(in);
    refuse_overwriting(files, out);
    auto const model = describe(files);
    auto plan = plan_gguf(files, model);
    if (files.hf() != nullptr)
        set_vocabulary(plan.keys, vocabulary_of(read_tokenizer(files.hf()->folder()), model.spec.vocabulary,
                                                plan.architecture, files.source()));
    if (options.name) plan.keys.set("general.name", *options.name);
    std::vector<gguf_tensor> table;
    table.reserve(plan.tensors.size());
    converted done;
    for (auto const& tensor : plan.tensors) {
        table.push_back({tensor.name, tensor.dims, type_of(files.tensors(), tensor, options.type)});
        done.bytes += table.back().bytes();
        ++done.tensors;
    }
    auto const embedding = files.tensors().tensor(model.tensors.token_embedding.name).type;
    auto type = options.type.value_or(embedding);
    // A mixture is called by its experts' type.
    if (std::ranges::find(table, ggml_type::mxfp4, &gguf_tensor::type) != table.end()) type = ggml_type::mxfp4;
    if (auto const number = file_type(type); number && (options.type || files.gguf() == nullptr))
        plan.keys.set("general.file_type", *number);
    gguf_writer writer(out, plan.keys, table);
    std::uint64_t written = 0;
    for (std::size_t i = 0; i < table.size(); ++i) {
        write_tensor(writer, files.tensors(), plan.tensors[i], table[i].type);
        written += table[i].bytes();
        if (report) report(static_cast<double>(written) / static_cast<double>(done.bytes));
    }
    files.tensors().check_unchanged();
    prove(writer.partial(), out, model.spec);
    writer.finish();
    return done;
}

} // namespace plait
