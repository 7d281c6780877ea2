# What CI starts to see that the programs run, one a line: "<seconds allowed> <shell command>". Read by
# .ci/run. Every example is here, and benchmarks in their shortest form; cartpole starts
# cartpole_observer.
smoke_lines=(
  '20 add 1 tcp://127.0.0.1:29517 & other=$!; add 0 tcp://127.0.0.1:29517; wait $other'
  '20 for wrong in "" foo 2 "0 nope://x" "0 tcp://127.0.0.1:29517 more"; do status=0; add $wrong || status=$?; [ $status = 2 ]; done'
  '60 cartpole --world-size 3 --batch true --episodes 2 --steps 100'
)
