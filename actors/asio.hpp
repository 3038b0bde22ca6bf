#pragma once

// The bridge between plait and standalone Asio, both ways. The only headers of this floor that include Asio.

#include <plait/actors/asio/asio_executor.hpp>
#include <plait/actors/asio/asio_runtime.hpp>
#include <plait/actors/asio/asio_start.hpp>
#include <plait/actors/asio/asio_task.hpp>
