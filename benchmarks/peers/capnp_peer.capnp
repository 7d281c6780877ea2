@0xd2b0c8ee5d1c1a6f;

interface Peer {
  echo @0 (payload :Data) -> (payload :Data);
  push @1 (payload :Data);
}
