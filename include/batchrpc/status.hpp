#pragma once

/// A node's status page, by HTTP: docs/status-page.md. Link batchrpc::status.

#include "batchrpc/batchrpc.hpp"
#include "batchrpc/status/status_server.hpp"
