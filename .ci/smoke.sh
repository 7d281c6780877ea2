# The programs that CI starts to see that they run, one a line: "<seconds allowed> <program> [arguments]".
# Read by .ci/run; every example is here, and benchmarks in their shortest form.
smoke_programs=(
  "60 cartpole --world-size 3 --batch true --episodes 2 --steps 100"
)
