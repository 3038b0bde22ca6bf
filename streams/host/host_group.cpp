#include <cmath>
#include <utility>

#include <plait/actors/error.hpp>
#include <plait/streams/host/group_core.hpp>
#include <plait/streams/host/host_group.hpp>

namespace plait::host {

namespace {

class host_communicator final : public communicator {
public:
    host_communicator(std::shared_ptr<group_core> group, int rank) noexcept
        : group_(std::move(group))
        , rank_(rank)
    {
    }
    ~host_communicator() override { group_->leave(rank_); }

    int rank() const noexcept override { return rank_; }
    int size() const noexcept override { return group_->size(); }

    ticket put(stream& on, collective_call const& call) override
    {
        check(call);
        auto* const where = dynamic_cast<host_stream*>(&on);
        require(where != nullptr, call, "not on a stream of a host device");
        require(where->bell()->is_open(), call, "on a device from which its gpu has taken no flow yet");
        return where->put(info_of(call, size()), group_->enter(rank_, *where, call));
    }

    void abort(std::exception_ptr why) noexcept override { group_->abort(std::move(why)); }
    std::exception_ptr failure() const noexcept override { return group_->failure(); }

private:
    void require(bool holds, collective_call const& call, char const* what) const
    {
        if (holds) return;
        throw error(errc::invalid_argument, group_->name() + ": rank " + std::to_string(rank_) + "'s " +
                                                std::string(name(call.kind)) + " at " + call.where.file + ":" +
                                                std::to_string(call.where.line) + ": " + what);
    }

    void check(collective_call const& call) const
    {
        using enum collective_kind;
        bool const sums = call.kind == all_reduce || call.kind == reduce_scatter;
        bool const paired = call.kind == send || call.kind == receive;
        require(call.count >= 0, call, "count is negative");
        require(!sums || call.element == element_kind::f32, call, "element: a sum is of f32");
        require(!sums || call.parts >= 1, call, "parts: at least 1");
        if (paired || call.kind == broadcast)
            require(call.peer >= 0 && call.peer < size(), call, "peer is no rank of the group");
        require(!paired || call.peer != rank_, call, "peer is the rank itself");
        if (call.count == 0) return;
        bool const reads = call.kind != receive && (call.kind != broadcast || call.peer == rank_);
        require(!reads || call.in != nullptr, call, "in is null");
        require(call.kind == send || call.out != nullptr, call, "out is null");
        if (call.kind == all_gather || call.kind == reduce_scatter || call.kind == all_to_all)
            require(call.in != call.out || size() == 1, call, "out is in");
    }

    std::shared_ptr<group_core> group_;
    int rank_;
};

} // namespace

std::shared_ptr<host_fabric> make_host_fabric()
{
    return std::make_shared<host_fabric>();
}

duration host_link::time_of(std::int64_t bytes) const noexcept
{
    if (bytes_per_second <= 0) return latency;
    auto const wire = std::ceil(static_cast<double>(bytes) * 1e9 / bytes_per_second);
    return latency + duration(static_cast<std::int64_t>(wire));
}

std::vector<std::unique_ptr<communicator>> make_host_group(runtime& rt, int size, host_group_options options)
{
    if (size < 1) throw error(errc::invalid_argument, "make_host_group: size: " + std::to_string(size));
    auto const group = std::make_shared<group_core>(rt, size, std::move(options));
    std::vector<std::unique_ptr<communicator>> ranks;
    ranks.reserve(static_cast<std::size_t>(size));
    for (int rank = 0; rank < size; ++rank)
        ranks.push_back(std::make_unique<host_communicator>(group, rank));
    return ranks;
}

} // namespace plait::host
