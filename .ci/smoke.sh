# Commands that show that the programs run, one per line: "<seconds allowed> <shell command>". .ci/run reads them.
# Every example is listed; cartpole starts cartpole_observer.
example_lines=(
  '20 folder=$(mktemp -d); add 1 file://$folder/join & other=$!; add 0 file://$folder/join; wait $other; rm -r $folder'
  '20 folder=$(mktemp -d); serve file://$folder/join >$folder/log & server=$!; until grep -q serving $folder/log; do sleep 0.1; done; kill -TERM $server; wait $server; rm -r $folder'
  '20 out=$(objects); echo "$out"; [[ $out == *"no node holds anything" ]]; status=0; objects more || status=$?; [ $status = 2 ]'
  '20 out=$(walk); echo "$out"; [[ $out == "16 environments, "* ]]; join=file://$(mktemp -d)/join; walk worker 2 $join & a=$!; walk worker 1 $join & b=$!; walk driver $join; wait $a; wait $b; rm -r $(dirname ${join#file://}); status=0; walk worker 3 || status=$?; [ $status = 2 ]'
  '20 for wrong in "" foo 2 "0 nope://x" "0 tcp://127.0.0.1:1 more"; do status=0; add $wrong || status=$?; [ $status = 2 ]; done'
  '60 cartpole --world-size 3 --batch true --episodes 2 --steps 100'
  '60 parameter_server --trainers 2 --iterations 2 --batch-size 2 --image 32 --check'
  '60 folder=$(mktemp -d); ppo --workers 0 --envs-per-worker 8 --total-steps 4096 --checkpoint $folder/a --json $folder/a.json --figure $folder/a.svg; [ -s $folder/a.svg ] && [ -s $folder/a.json ]; ppo --workers 0 --envs-per-worker 8 --total-steps 4096 --checkpoint $folder/a | grep "16 updates"; rm -r $folder'
  '60 folder=$(mktemp -d); ppo --workers 0 --envs-per-worker 8 --total-steps 2048 --weights $folder/weights.pt; /usr/bin/python3 scripts/export_policy.py two-mlps $folder --forms script --weights $folder/weights.pt; /usr/bin/python3 -W ignore -c "import sys, torch; a, b = (torch.jit.load(p).state_dict() for p in sys.argv[1:]); assert a.keys() == b.keys() and all(map(torch.equal, a.values(), b.values()))" $folder/weights.pt $folder/script.pt; ppo --workers 0 --envs-per-worker 8 --total-steps 2048 --policy script --policy-path $folder/script.pt; rm -r $folder'
  '60 folder=$(mktemp -d); profile_example --output-dir $folder --waiting-ms 5 >$folder/log; grep -q "remote_op: add" $folder/log; scripts/draw_trace.py $folder/computing.trace.json $folder/picture.svg; [ -s $folder/picture.svg ]; rm -r $folder'
  '60 scripts/check_resnet.sh'  # starts resnet_outputs
  '60 folder=$(mktemp -d); for how in "--inference agent" "--inference worker --buffers 2 --policy script"; do ppo --workers 2 --envs-per-worker 8 --total-steps 4096 --minibatches 2 $how --figure $folder/curve.svg --json $folder/report; [ -s $folder/curve.png ]; done; rm -r $folder'
)
# Benchmarks in their shortest form, and a minute of random failures (.ci/run --full).
benchmark_lines=(
  '60 benchmarks/compare parameter_server --rounds 1 --trainers 2 --iterations 2 --transports unix'
  '60 rref_benchmark --count 20000'
  '60 call_benchmark --transport tcp --in-flight 1 --case scalars3 --pinned no --handlers short --style get --floor blocking --profiler off,10,1 --seconds 0.01 --rounds 1'
  '60 tensor_benchmark --bytes 1K,1M --transport tcp,inproc --seconds 0.01 --rounds 1'
  '60 benchmarks/compare calls --quick --rounds 1 --seconds 0.02 --only batchrpc,batchrpc-workers,bare-sockets'
  '60 folder=$(mktemp -d); rl_benchmark --world-size 4,5 --episodes 2 --steps 20 --output-file-path $folder/a; scripts/plot_report $folder/a $folder/a --labels one,other --output $folder/a.svg; [ -s $folder/a.svg ]; rm -r $folder'
  '30 shared_link --serve tcp://127.0.0.1:29611 & server=$!; shared_link --call tcp://127.0.0.1:29611 --mebibytes 8; kill $server; wait $server'
  '60 scale_benchmark --largest 100 --rounds 1; scale_benchmark bytes --largest 100000 --rounds 1'
  '60 rl_floor --world-size 4 --episodes 2 --steps 20'
  '120 benchmarks/compare rl --rounds 1 --world-size 4 --episodes 2 --steps 20'
  '60 benchmarks/compare tensors --quick --rounds 1 --seconds 0.02 --only batchrpc,bare-sockets'
  '200 soak --seconds 60 --seed 1'
  '60 env_benchmark --workers 3 --envs-per-worker 2 --seconds 0.1 --rounds 1 --simulate 2; env_benchmark --workers 2 --envs-per-worker 8 --env-threads 1 --compute --buffers 2 --mode recv --seconds 0.1 --rounds 1'
  '60 benchmarks/compare envs --quick --rounds 1 --seconds 0.1 --only batchrpc-2-buffers-any-worker'
  '60 simulation_benchmark'
  '60 policy_benchmark --batch 1,4 --seconds 0.05 --rounds 1'
  '60 batch_benchmark inprocess isolate remote --observers 2 --seconds 0.02 --rounds 1'
)
