#include <plait/model/files/safetensors_index.hpp>

#include <plait/actors/error.hpp>
#include <plait/model/files/json_events.hpp>
#include <plait/model/files/mapped_file.hpp>
#include <plait/model/text/quote.hpp>

#include <utility>

namespace plait {
namespace {

constexpr std::uint64_t max_bytes = 100'000'000;
constexpr std::size_t max_depth = 16;
constexpr std::size_t max_tensors = 1 << 20;
constexpr std::size_t max_shards = 4096;

using weight_map = std::vector<std::pair<std::string, std::string>>;

/// Takes the strings of `weight_map` and lets the rest pass.
class map_listener final : public json_listener {
public:
    map_listener(std::string const& source, weight_map& out)
        : source_(source)
        , out_(out)
    {
    }

    void begin_object() override
    {
        if (inside()) fail(key_, "is an object, expected a string");
        ++depth_;
        mapping_ = depth_ == 2 && key_ == "weight_map";
        found_ = found_ || mapping_;
    }

    void end_object() override
    {
        --depth_;
        mapping_ = false;
    }

    void begin_array() override
    {
        other();
        ++depth_;
    }

    void end_array() override { --depth_; }
    void key(std::string name) override { key_ = std::move(name); }

    void string(std::string value) override
    {
        if (!inside()) return other();
        if (out_.size() == max_tensors) fail(key_, "more than " + std::to_string(max_tensors) + " tensors");
        out_.emplace_back(std::move(key_), std::move(value));
    }

    void null() override { other(); }
    void boolean(bool) override { other(); }
    void integer(std::int64_t) override { other(); }
    void number(double) override { other(); }

    void finish() const
    {
        if (!found_) fail("weight_map", "missing, or not an object");
        if (out_.empty()) fail("weight_map", "is empty");
    }

private:
    bool inside() const noexcept { return mapping_ && depth_ == 2; }

    void other() const
    {
        if (inside()) fail(key_, "expected a string");
        if (depth_ == 0) throw error(errc::bad_file, source_ + ": expected an object");
    }

    [[noreturn]] void fail(std::string const& field, std::string const& what) const
    {
        throw error(errc::bad_file, source_ + ": field " + quote(field) + ": " + what);
    }

    std::string const& source_;
    weight_map& out_;
    std::string key_;
    std::size_t depth_ = 0;
    bool mapping_ = false;
    bool found_ = false;
};

bool plain_name(std::string const& file)
{
    constexpr std::string_view ending = ".safetensors";
    return file.size() > ending.size() && file.ends_with(ending) && !file.starts_with('.') &&
           file.find_first_of(std::string_view("/\\:\0", 4)) == file.npos;
}

} // namespace

safetensors_index safetensors_index::parse(std::string_view text, std::string const& source)
{
    weight_map listed;
    map_listener listener(source, listed);
    read_json(text, source, max_depth, listener);
    listener.finish();

    std::map<std::string, std::uint32_t, std::less<>> numbers;
    for (auto const& [tensor, shard] : listed) {
        if (!plain_name(shard))
            throw error(errc::bad_file, source + ": tensor " + quote(tensor) + ": the shard " + quote(shard) +
                                            " is not the name of a safetensors file in this folder");
        numbers.emplace(shard, 0);
        if (numbers.size() > max_shards)
            throw error(errc::bad_file, source + ": more than " + std::to_string(max_shards) + " shards");
    }
    safetensors_index out;
    out.shards.reserve(numbers.size());
    for (auto& [shard, number] : numbers) {
        number = static_cast<std::uint32_t>(out.shards.size());
        out.shards.push_back(shard);
    }
    for (auto& [tensor, shard] : listed)
        out.shard_of.emplace(std::move(tensor), numbers.find(shard)->second);
    return out;
}

safetensors_index safetensors_index::open(std::filesystem::path const& path)
{
    return parse(read_text_file(path, max_bytes), path.string());
}

} // namespace plait
