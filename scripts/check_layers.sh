#!/usr/bin/env bash
# Checks the rules of CONTRIBUTING.md that a compiler does not check: includes point down; the core includes no
# component; a component includes only components that it links; public headers use only types of the standard
# library; and only the transport sleeps or asks a clock.
# Prints each violation as file:line: what. A line marked NOLINT(layers) is let through.
set -euo pipefail
cd "$(dirname "$0")/.."

# Comments and strings may contain forbidden words, so they are cut out first.
git ls-files -z -co --exclude-standard 'include/**.hpp' 'src/**.hpp' 'src/**.cpp' |
  xargs -0 -r awk '
    BEGIN {
      # Layers of one rank do not include each other. The last two ranks are the components. What they link
      # besides the core is listed here as in src/CMakeLists.txt.
      count = split("base,trace,future,wire,transport,tls,metrics,call,batch recording rref,session,peers dispatch,node,env profile testing,status torch", ranks, ",")
      links["env"] = links["profile"] = links["testing"] = " "
      links["status"] = " profile "
      links["torch"] = " env "
      for (i = 1; i <= count; ++i) {
        beside = split(ranks[i], names, " ")
        for (j = 1; j <= beside; ++j) rank[names[j]] = i
      }
      library_header = "^(capnp/|kj/|openssl/|spdlog/|fmt/|httplib\\.h|torch/|ATen/|c10/|caffe2/)"
      library_name = "(^|[^A-Za-z0-9_:])(::)?(at|c10|torch|capnp|kj|spdlog|fmt|httplib)::"
      timing = "this_thread::sleep|sleep_for|usleep|nanosleep|_clock::now"
    }
    function complain(what) { printf "%s:%d: %s\n", FILENAME, FNR, what; ++violations }

    FNR == 1 {
      split(FILENAME, part, "/")
      public = part[1] == "include"
      layer = public ? part[3] : part[2]
      sub(/\.hpp$/, "", layer)  # include/batchrpc/torch.hpp belongs to torch
      if (layer == "batchrpc") layer = ""  # include/batchrpc/batchrpc.hpp: above all layers of the core
      else if (!(layer in rank)) complain(layer " has no rank: give it one in scripts/check_layers.sh")
      own = layer in links ? layer : "the core"
      core_header = public && layer != "torch"
      may_asio = FILENAME ~ /batchrpc\/future\/asio\.hpp$/ || !public
      in_comment = 0
    }
    /NOLINT\(layers\)/ { next }
    {
      line = $0
      if (in_comment) {
        if (!sub(/^.*\*\//, "", line)) next
        in_comment = 0
      }
      gsub(/\/\*([^*]|\*+[^*\/])*\*+\//, "", line)
      is_include = line ~ /^[ \t]*#[ \t]*include/
      if (!is_include) gsub(/"([^"\\]|\\.)*"/, "\"\"", line)
      sub(/\/\/.*/, "", line)
      if (sub(/\/\*.*/, "", line)) in_comment = 1
    }
    is_include {
      header = line
      gsub(/^[^"<]*["<]|[">].*$/, "", header)
      split(header, step, "/")
      target = step[1] == "batchrpc" ? step[2] : step[1]
      sub(/\.hpp$/, "", target)
      if (own == "the core" && header == "batchrpc/batchrpc.hpp")
        complain("includes " header ", which is above it")
      if ((target in links) && target != own && (own == "the core" || index(links[own], " " target " ") == 0))
        complain(own " includes " header ", of a component that it does not link")
      else if ((layer in rank) && (target in rank) && target != layer && rank[target] >= rank[layer])
        complain(layer " includes " header ", which is not below it")
      if (core_header && header ~ library_header)
        complain("a core header includes " header)
      if (header ~ /^asio(\/|\.hpp$)/ && !may_asio)
        complain("includes " header "; only future/asio.hpp may")
      next
    }
    core_header && match(line, library_name) {
      complain("a core header names " substr(line, RSTART + (RSTART > 1), RLENGTH - (RSTART > 1)))
    }
    # A thread without a node sleeps by the clock of the system: that is src/future/wait.cpp.
    layer != "transport" && FILENAME != "src/future/wait.cpp" && match(line, timing) {
      complain("sleeps or asks a clock (" substr(line, RSTART, RLENGTH) "); transport/loop.hpp does that")
    }
    END {
      if (violations) exit 1
      print "layers: " NR " lines keep the rules"
    }'
