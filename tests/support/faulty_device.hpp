#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include <plait/actors/error.hpp>
#include <plait/streams/host/host_device.hpp>

namespace plait::test {

/// What happens to a device, once: after so many polls it is lost, or it does nothing any more. Polls count from when
/// `armed` is set.
struct fault {
    enum class kind : std::uint8_t { lost, hangs };
    kind what = kind::lost;
    std::int64_t after = 0;
    std::shared_ptr<std::atomic<bool>> armed = std::make_shared<std::atomic<bool>>(false);
};

/// A host device with a fault.
class faulty_device final : public device {
public:
    faulty_device(std::shared_ptr<host::compute_pool> pool, std::size_t memory, fault f)
        : inner_(std::move(pool), memory)
        , fault_(f)
    {
    }

    device_kind kind() const noexcept override { return inner_.kind(); }
    std::string description() const override { return inner_.description(); }
    stream& stream_of(stream_role role) noexcept override { return inner_.stream_of(role); }
    std::byte* allocate(std::size_t bytes) override { return inner_.allocate(bytes); }
    void deallocate(std::byte* memory, std::size_t bytes) noexcept override { inner_.deallocate(memory, bytes); }
    void driven_by(event_loop& home) noexcept override { inner_.driven_by(home); }
    bool poll() override
    {
        if (!fault_.armed->load(std::memory_order_relaxed) || polls_++ < fault_.after) return inner_.poll();
        if (fault_.what == fault::kind::lost && !std::exchange(gone_, true))
            inner_.abort(std::make_exception_ptr(error(errc::device_lost, "the device of a test")));
        return false;
    }

private:
    host::host_device inner_;
    fault fault_;
    std::int64_t polls_ = 0;
    bool gone_ = false;
};

} // namespace plait::test
