#include <plait/model/files/safetensors.hpp>

#include <plait/actors/error.hpp>
#include <plait/model/files/fingerprint.hpp>
#include <plait/model/files/json_events.hpp>
#include <plait/model/text/quote.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>

namespace plait {
namespace {

static_assert(std::endian::native == std::endian::little, "safetensors is little-endian; a big-endian host must swap");

constexpr std::uint64_t length_bytes = 8;
constexpr std::uint64_t max_header_bytes = 100'000'000; // the format's own limit
constexpr std::size_t max_tensors = 131072;
constexpr std::size_t max_name_bytes = 1024;
constexpr std::size_t max_dims = 16;
constexpr std::size_t header_depth = 3; // the table, a tensor, its shape

/// A type of the format: that of ggml, or for a foreign one an integer type of the same size.
struct dtype {
    std::string_view name;
    ggml_type type;
    bool foreign = false;
};

constexpr std::array dtypes{
    dtype{"F32", ggml_type::f32},
    dtype{"F16", ggml_type::f16},
    dtype{"BF16", ggml_type::bf16},
    dtype{"F64", ggml_type::f64},
    dtype{"I8", ggml_type::i8},
    dtype{"I16", ggml_type::i16},
    dtype{"I32", ggml_type::i32},
    dtype{"I64", ggml_type::i64},
    dtype{"U8", ggml_type::i8, true},
    dtype{"U16", ggml_type::i16, true},
    dtype{"U32", ggml_type::i32, true},
    dtype{"U64", ggml_type::i64, true},
    dtype{"BOOL", ggml_type::i8, true},
    dtype{"F8_E4M3", ggml_type::i8, true},
    dtype{"F8_E5M2", ggml_type::i8, true},
    dtype{"F8_E8M0", ggml_type::i8, true},
    dtype{"F8_E4M3FNUZ", ggml_type::i8, true},
    dtype{"F8_E5M2FNUZ", ggml_type::i8, true},
    dtype{"C64", ggml_type::i64, true},
};

std::string text(std::uint64_t value)
{
    return std::to_string(value);
}

} // namespace

/// Takes the table as it is read.
class safetensors_file::header final : public json_listener {
public:
    header(safetensors_file& file, std::uint64_t data_bytes)
        : file_(file)
        , data_bytes_(data_bytes)
    {
    }

    void begin_object() override
    {
        switch (place_) {
        case place::outside:
            place_ = place::table;
            return;
        case place::table:
            if (name_ == "__metadata__") {
                place_ = place::metadata;
                return;
            }
            place_ = place::tensor;
            dtype_.reset();
            shape_.reset();
            offsets_.reset();
            return;
        default:
            fail("an object where none belongs");
        }
    }

    void end_object() override
    {
        if (place_ == place::tensor) add_tensor();
        place_ = place_ == place::table ? place::outside : place::table;
    }

    void key(std::string name) override
    {
        if (place_ == place::table) {
            name_ = std::move(name);
            if (name_.empty() || name_.size() > max_name_bytes || name_.find('\0') != name_.npos)
                fail("a name is empty, longer than " + text(max_name_bytes) + " bytes, or holds a NUL byte");
        } else if (place_ == place::tensor) {
            if (name != "dtype" && name != "shape" && name != "data_offsets") fail("unknown field " + quote(name));
            field_ = std::move(name);
        }
    }

    void string(std::string value) override
    {
        if (place_ == place::metadata) return;
        if (place_ != place::tensor || field_ != "dtype") fail("a string where none belongs");
        dtype_ = std::move(value);
    }

    void begin_array() override
    {
        if (place_ != place::tensor || field_ == "dtype") fail("an array where none belongs");
        place_ = place::numbers;
        (field_ == "shape" ? shape_ : offsets_).emplace();
    }

    void integer(std::int64_t value) override
    {
        if (place_ != place::numbers) fail("a number where none belongs");
        auto& numbers = field_ == "shape" ? *shape_ : *offsets_;
        if (value < 0) fail(field_ + ": " + std::to_string(value) + " is negative");
        if (numbers.size() == max_dims) fail(field_ + ": more than " + text(max_dims) + " numbers");
        numbers.push_back(static_cast<std::uint64_t>(value));
    }

    void end_array() override { place_ = place::tensor; }

    void number(double) override { fail("a number that is not a whole one of at most 63 bits"); }
    void null() override { fail("null where a value belongs"); }
    void boolean(bool) override { fail("a boolean where none belongs"); }

    /// Names the tensors, now that their names stay where they are, and proves that they cover the data.
    void finish()
    {
        auto& tensors = file_.tensors_;
        for (std::size_t i = 0; i < tensors.size(); ++i)
            tensors[i].name = file_.names_[i];
        std::ranges::sort(tensors, {}, [](stored_tensor const& t) { return t.offset; });
        std::uint64_t covered = 0;
        for (stored_tensor const& tensor : tensors) {
            if (tensor.offset != covered) {
                name_ = tensor.name;
                fail("begins at byte " + text(tensor.offset) + " of the data, but what is before it ends at byte " +
                     text(covered) + (tensor.offset < covered ? ": an overlap" : ": a hole"));
            }
            covered += tensor.bytes;
        }
        if (covered != data_bytes_)
            throw error(errc::bad_file, file_.source_ + ": the tensors end at byte " + text(covered) +
                                            " of the data, which has " + text(data_bytes_) + " bytes");
        auto& order = file_.by_name_;
        order.resize(tensors.size());
        std::iota(order.begin(), order.end(), 0u);
        std::ranges::sort(order, {}, [&](std::uint32_t i) { return tensors[i].name; });
    }

private:
    enum class place { outside, table, metadata, tensor, numbers };

    [[noreturn]] void fail(std::string const& what, errc code = errc::bad_file) const
    {
        throw error(code, file_.source_ + ": " + (name_.empty() ? "header" : "tensor " + quote(name_)) + ": " + what);
    }

    void add_tensor()
    {
        for (auto const& [there, field] :
             {std::pair{dtype_.has_value(), "dtype"}, std::pair{shape_.has_value(), "shape"},
              std::pair{offsets_.has_value(), "data_offsets"}})
            if (!there) fail(std::string("has no ") + field);
        if (file_.tensors_.size() == max_tensors) fail("more than " + text(max_tensors) + " tensors");
        auto const found = std::ranges::find(dtypes, *dtype_, &dtype::name);
        if (found == dtypes.end()) fail("unknown type " + quote(*dtype_), errc::unsupported);

        stored_tensor tensor;
        tensor.type = found->type;
        if (found->foreign) tensor.foreign_type = found->name;
        std::uint64_t const bytes = layout(found->type).bytes;
        tensor.bytes = set_shape(tensor, bytes) * bytes;
        if (offsets_->size() != 2) fail("data_offsets: " + text(offsets_->size()) + " numbers, expected 2");
        std::uint64_t const begin = (*offsets_)[0];
        std::uint64_t const end = (*offsets_)[1];
        if (begin > end) fail("data_offsets: begin " + text(begin) + " is after end " + text(end));
        if (end > data_bytes_)
            fail("data_offsets: end " + text(end) + " is after the " + text(data_bytes_) +
                 " bytes of data in the file (truncated?)");
        if (end - begin != tensor.bytes)
            fail("data_offsets: " + text(end - begin) + " bytes, but its type and shape need " + text(tensor.bytes));
        tensor.offset = begin;
        file_.tensors_.push_back(tensor);
        file_.names_.push_back(std::move(name_));
        name_.clear();
    }

    /// Turns the shape around; returns the number of elements, of which each takes `bytes` bytes.
    std::uint64_t set_shape(stored_tensor& tensor, std::uint64_t bytes) const
    {
        std::uint64_t const largest = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()) / bytes;
        std::uint64_t elements = 1;
        std::size_t d = 0;
        for (auto size = shape_->rbegin(); size != shape_->rend(); ++size, ++d) {
            if (*size == 0) fail("has no elements", errc::unsupported);
            if (elements > largest / *size) fail("shape: its size in bytes overflows");
            elements *= *size;
            tensor.dims[std::min<std::size_t>(d, 3)] *= static_cast<std::int64_t>(*size);
        }
        tensor.rank = static_cast<unsigned>(std::clamp<std::size_t>(d, 1, 4));
        return elements;
    }

    safetensors_file& file_;
    std::uint64_t data_bytes_;
    place place_ = place::outside;
    std::string name_, field_;
    std::optional<std::string> dtype_;
    std::optional<std::vector<std::uint64_t>> shape_, offsets_;
};

namespace {

/// The length of the header of a file of `size` bytes that begins with `prefix`.
std::uint64_t header_bytes(std::string const& source, std::uint64_t prefix, std::uint64_t size)
{
    auto const fail = [&](std::string const& what) {
        throw error(errc::bad_file, source + ": header length: " + what);
    };
    if (prefix == 0) fail("is 0");
    if (prefix > max_header_bytes)
        fail(text(prefix) + " bytes; at most " + text(max_header_bytes) + " are allowed: not a safetensors file?");
    if (prefix > size - length_bytes) fail(text(prefix) + " bytes, but the file has " + text(size) + " (truncated?)");
    return prefix;
}

void require_prefix(std::string const& source, std::uint64_t size)
{
    if (size < length_bytes)
        throw error(errc::bad_file, source + ": the file has " + text(size) + " bytes: not a safetensors file");
}

} // namespace

void safetensors_file::read_header(std::string_view json, std::uint64_t data_bytes)
{
    if (!json.starts_with('{')) throw error(errc::bad_file, source_ + ": header: does not begin with '{'");
    header_hash_ = mix(data_bytes, std::as_bytes(std::span(json.data(), json.size())));
    header table(*this, data_bytes);
    read_json(json, source_ + ": header", header_depth, table);
    table.finish();
    for (stored_tensor& tensor : tensors_)
        tensor.offset += length_bytes + json.size();
}

safetensors_file safetensors_file::open(std::filesystem::path const& path)
{
    safetensors_file file;
    file.source_ = path.string();
    file.file_ = mapped_file(path);
    std::uint64_t const size = file.file_.size();
    require_prefix(file.source_, size);
    std::uint64_t prefix = 0;
    file.file_.read(0, std::as_writable_bytes(std::span(&prefix, 1)));
    std::string json(static_cast<std::size_t>(header_bytes(file.source_, prefix, size)), '\0');
    file.file_.read(length_bytes, std::as_writable_bytes(std::span(json)));
    file.read_header(json, size - length_bytes - json.size());
    return file;
}

safetensors_file safetensors_file::parse(std::span<std::byte const> image, std::string source)
{
    safetensors_file file;
    file.source_ = std::move(source);
    file.image_ = image;
    require_prefix(file.source_, image.size());
    std::uint64_t prefix = 0;
    std::memcpy(&prefix, image.data(), sizeof prefix);
    auto const length = static_cast<std::size_t>(header_bytes(file.source_, prefix, image.size()));
    std::string_view const json(reinterpret_cast<char const*>(image.data()) + length_bytes, length);
    file.read_header(json, image.size() - length_bytes - length);
    return file;
}

stored_tensor const* safetensors_file::find_tensor(std::string_view name) const noexcept
{
    auto const at = std::ranges::lower_bound(by_name_, name, {}, [&](std::uint32_t i) { return tensors_[i].name; });
    return at != by_name_.end() && tensors_[*at].name == name ? &tensors_[*at] : nullptr;
}

void safetensors_file::read(stored_tensor const& tensor, std::uint64_t offset, std::span<std::byte> out) const
{
    check_range(tensor, offset, out.size());
    if (out.empty()) return;
    if (image_.empty())
        file_.read(tensor.offset + offset, out);
    else
        std::memcpy(out.data(), image_.data() + tensor.offset + offset, out.size());
}

void safetensors_file::check_unchanged() const
{
    if (image_.empty()) file_.check_unchanged();
}

std::uint64_t safetensors_file::fingerprint() const
{
    return mix_samples(header_hash_, *this);
}

} // namespace plait
