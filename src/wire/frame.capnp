@0xb1d7a3f05e2c9467;
# The envelope of everything that travels between two nodes. A connection is a sequence of frames; each is one
# single-segment Cap'n Proto message in stream framing, followed by the bytes that docs/wire.md says.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("batchrpc::schema");

struct Frame {
  id @0 :UInt64;            # of the call; a reply, chunk or cancel names the call that it belongs to
  sequence @1 :UInt64;      # 0
  acknowledged @2 :UInt64;  # how many reliable frames of the session were received; 0: says nothing
  flags @3 :UInt16;         # bit 0: payloads follow this frame at once; bit 1: no reply wanted;
                            # bit 2 (chunk): belongs to a reply, not to a call; bit 3 (hello): the session continues;
                            # bit 4 (hello): its sender asks to join here
  union {
    hello @4 :Hello;
    define @5 :Definition;
    call :group {
      function @6 :UInt32;  # the number that a Definition gave it
      timeout @7 :UInt64;   # microseconds left when it was sent; 0: none
      arguments @8 :AnyPointer;
      payloads @9 :List(UInt64);  # sizes in bytes of what travels beside the envelope
      context @10 :Context;
    }
    result :group {
      value @11 :AnyPointer;
      payloads @12 :List(UInt64);
      record @22 :Record;   # of a call that asked for it (Context.record)
    }
    error @13 :Error;
    chunk :group {          # followed by `size` bytes, padded to 8
      payload @14 :UInt32;  # which of the call's payloads; its bytes come in order
      size @15 :UInt64;
    }
    cancel @16 :Void;       # the rest of the call's payloads never comes, and it is not to run
    acknowledge @17 :Void;
    credit @18 :UInt64;     # whether the rest of the call's chunks may be sent: 0: not now; 2^64 - 1: all; other
                            # numbers: room for later
    ping @19 :Void;
    pong @20 :Void;
    goodbye @21 :Goodbye;   # the sender closes after it
  }
}

struct Hello {
  major @0 :UInt16;
  minor @1 :UInt16;
  rank @2 :Int32;           # -1: none
  incarnation @3 :UInt64;   # differs between two nodes of one name
  session @4 :UInt64;       # chosen by who connects, never 0; 0 in the answer that does not know the session
  received @5 :UInt64;      # how many reliable frames of this session
  name @6 :Text;
  job @7 :Text;
  secret1 @8 :UInt64;       # 128 bits that the sender tells this receiver alone, the same in each hello
  secret2 @9 :UInt64;
  receiver @10 :UInt64;     # the incarnation that the sender means; 0: whoever answers
}

struct Definition {         # the sender will call this function by this number
  number @0 :UInt32;
  name @1 :Text;
  signature @2 :Text;
}

struct Error {
  code @0 :UInt16;          # batchrpc::ErrorCode
  mayHaveRun @1 :Bool;
  message @2 :Text;         # for remote_error: what() of the exception thrown
  type @3 :Text;            # its C++ type
  retryAfter @4 :UInt64;    # microseconds, of Overloaded: when there may be room; 0: not known
  function @5 :Text;        # for remote_error: what threw; empty: the function that was called
  record @6 :List(Record);  # one, of a call that asked for it
}

struct Goodbye {
  code @0 :UInt16;          # batchrpc::ErrorCode
  reason @1 :Text;
}

struct Context {
  trace @0 :Data;           # W3C trace context, binary: 16 bytes trace id, 8 bytes span id, 1 byte flags
  metadata @1 :List(Entry);
  record @2 :UInt16;        # 0: none is wanted; 1: times; 2: operators, too
  struct Entry {
    key @0 :Text;
    value @1 :Text;
  }
}

struct Record {             # the callee's side of a call; times are in nanoseconds, on its clock
  process @0 :UInt64;       # the system's numbers
  thread @1 :UInt64;
  received @2 :Int64;
  begun @3 :Int64;
  finished @4 :Int64;
  batch @5 :Batch;
  operators @6 :List(Operator);
  calls @7 :List(Call);     # that its handler made
  leftOut @8 :UInt64;       # of those two

  struct Batch {
    number @0 :UInt64;      # 0: the call was in none
    rows @1 :UInt64;
    begin @2 :Int64;
    end @3 :Int64;
  }
  struct Operator {
    name @0 :Text;
    begin @1 :Int64;
    end @2 :Int64;
    thread @3 :UInt64;
    shared @4 :Bool;
  }
  struct Place {
    node @0 :Text;
    rank @1 :Int32;
    process @2 :UInt64;
    thread @3 :UInt64;
  }
  struct Call {
    function @0 :Text;
    caller @1 :Place;
    callee @2 :Place;
    trace @3 :Data;         # as Context.trace
    parent @4 :UInt64;      # span id
    called @5 :Int64;       # on the caller's clock
    encoded @6 :Int64;
    sent @7 :Int64;
    replied @8 :Int64;
    ended @9 :Int64;
    bytesOut @10 :UInt64;
    bytesIn @11 :UInt64;
    error @12 :Text;
    record @13 :Record;
    parentIsExternal @14 :Bool;  # it is a span of who gave the trace
    shared @15 :Bool;       # a batch's handler made it
  }
}
