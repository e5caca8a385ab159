package main

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
)

// clocks returns the clock of each processor in MHz, as Linux reports it.
func clocks() []float64 {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return nil
	}
	return clocksIn(string(text))
}

func clocksIn(cpuinfo string) (clocks []float64) {
	for line := range strings.Lines(cpuinfo) {
		name, value, _ := strings.Cut(line, ":")
		if strings.TrimSpace(name) != "cpu MHz" {
			continue
		}
		if clock, err := strconv.ParseFloat(strings.TrimSpace(value), 64); err == nil {
			clocks = append(clocks, clock)
		}
	}
	return clocks
}

// tellClocks names the slowest and the fastest clock.
func tellClocks(clocks []float64) string {
	if len(clocks) == 0 {
		return "unknown"
	}
	low, high := rounded(slices.Min(clocks)), rounded(slices.Max(clocks))
	if low == high {
		return low + " MHz"
	}
	return fmt.Sprintf("%s – %s MHz", low, high)
}
