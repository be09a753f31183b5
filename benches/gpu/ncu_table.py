"""Reads ncu's CSV from standard input and prints a table of the kernels."""

import csv
import sys

lines = [line for line in sys.stdin if not line.startswith("==")]
rows = list(csv.DictReader(lines))
units, rows = rows[0], rows[1:]
PIXELS = 64 * 640 * 640


def number(row, name):
    return float(row[name].replace(",", ""))


print(f"{'kernel':42} {'us':>6} {'DRAM %':>7} {'issue %':>8} {'ALU %':>6} {'FMA %':>6} {'inst/px':>8} {'warps %':>8} "
      f"{'regs':>5} {'MB read':>8} {'MB written':>10}")
for row in rows:
    time = number(row, "gpu__time_duration.sum") * {"ns": 1e-3, "us": 1, "ms": 1e3}[units["gpu__time_duration.sum"]]
    print(f"{row['Kernel Name'].split('(')[0]:42} {time:6.1f} "
          f"{number(row, 'gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed'):7.1f} "
          f"{number(row, 'smsp__issue_active.avg.pct_of_peak_sustained_active'):8.1f} "
          f"{number(row, 'sm__inst_executed_pipe_alu.avg.pct_of_peak_sustained_active'):6.1f} "
          f"{number(row, 'sm__pipe_fma_cycles_active.avg.pct_of_peak_sustained_active'):6.1f} "
          f"{number(row, 'smsp__inst_executed.sum') * 32 / PIXELS:8.1f} "
          f"{number(row, 'sm__warps_active.avg.pct_of_peak_sustained_active'):8.1f} "
          f"{number(row, 'launch__registers_per_thread'):5.0f} "
          f"{number(row, 'lts__t_sectors_srcunit_tex_op_read.sum') * 32 / 1e6:8.1f} "
          f"{number(row, 'lts__t_sectors_srcunit_tex_op_write.sum') * 32 / 1e6:10.1f}")
