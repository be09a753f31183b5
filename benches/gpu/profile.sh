#!/usr/bin/env bash
# What limits each kernel (ncu), and whether it stays within its memory (compute-sanitizer). On a GPU machine with both.
#
#   benches/gpu/profile.sh            needs Python with PyTorch and CuPy; leaves the clocks alone
set -euo pipefail
cd "$(dirname "$0")"
python=${PYTHON:-python3}

metrics=gpu__time_duration.sum,gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed
metrics+=,smsp__issue_active.avg.pct_of_peak_sustained_active
metrics+=,sm__inst_executed_pipe_alu.avg.pct_of_peak_sustained_active
metrics+=,sm__pipe_fma_cycles_active.avg.pct_of_peak_sustained_active,smsp__inst_executed.sum
metrics+=,sm__warps_active.avg.pct_of_peak_sustained_active,launch__registers_per_thread
metrics+=,lts__t_sectors_srcunit_tex_op_read.sum,lts__t_sectors_srcunit_tex_op_write.sum
ncu --clock-control none --kernel-name regex:epochfeed --metrics "$metrics" --csv --page raw "$python" launches.py |
  "$python" ncu_table.py

# Without PyTorch's cache each tensor is an allocation of its own, past whose end an access is seen.
export PYTORCH_NO_CUDA_MEMORY_CACHING=1
for tool in memcheck racecheck; do
  echo "== $tool"
  compute-sanitizer --tool "$tool" --kernel-name kns=epochfeed --error-exitcode 1 "$python" check.py --quick | tail -n 4
done
# This one has to see all kernels, to know what they have written.
echo '== initcheck'
compute-sanitizer --tool initcheck --error-exitcode 1 "$python" launches.py | tail -n 4
