package main

import (
	"bytes"
	"fmt"
	"slices"
)

// page renders docs/explanation/tracing-cost.md.
func (m *measurement) page() []byte {
	var b bytes.Buffer
	say := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	say("# What tracing costs\n")
	say("<!-- Written by make bench-tracing; do not edit. -->\n")
	say("This page shows what a job costs the orchestrator without a collector, and with one, which takes spans over gRPC in another process")
	say("on the same machine: with every job sampled, and with one of a hundred. `make bench-tracing` writes it.")
	say("[telemetry.md](../reference/telemetry.md#cost) says what to make of it.\n")
	machine := m.report.Machine
	say("%s, on %d × %s, %s, %s, PostgreSQL %s. %d rounds in turns, after one to warm up. Each figure is the median of the rounds. *Of off* is the",
		m.report.Began.Format("2 January 2006"), machine.CPUs, machine.CPU, machine.System, machine.Go, machine.PostgreSQL, m.rounds)
	say("median of the ratios to the processor time without a collector in the same round.\n")
	for _, of := range m.cases() {
		say("## %s\n", of)
		say("| `sample_ratio` | orchestrator, CPU µs/job | of off | handlers, CPU µs/job | allocations/job | bytes/job | jobs/s |")
		say("|---|---:|---:|---:|---:|---:|---:|")
		for _, by := range modes {
			figure := func(name string) float64 { return median(m.values(by.name, of, name)) }
			ratio := "–"
			if by.ratio != "" {
				ratio = fmt.Sprintf("%.2f ×", median(m.ratios(by.name, of, orchestrator)))
			}
			say("| %s | %.2f | %s | %.2f | %.1f | %.0f | %.0f |", by.name, figure(orchestrator), ratio, figure("  handlers"),
				figure("allocations, orchestrator"), figure("allocated, orchestrator"), figure("rate"))
		}
		say("")
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// orchestrator is the figure of the bench for its processor time.
const orchestrator = "  orchestrator"

// cases are those with a rate, in the order in which they were measured.
func (m *measurement) cases() (all []string) {
	for _, t := range m.taken {
		if t.figure == "rate" && !slices.Contains(all, t.of) {
			all = append(all, t.of)
		}
	}
	return all
}

// values are those of a figure, by round.
func (m *measurement) values(mode, of, figure string) (all []float64) {
	for _, t := range m.taken {
		if t.mode == mode && t.of == of && t.figure == figure {
			all = append(all, t.value)
		}
	}
	return all
}

// ratios are those of a figure to the same figure without tracing in the same round.
func (m *measurement) ratios(mode, of, figure string) []float64 {
	off, on := m.values(modes[0].name, of, figure), m.values(mode, of, figure)
	ratios := make([]float64, min(len(off), len(on)))
	for i := range ratios {
		ratios[i] = on[i] / off[i]
	}
	return ratios
}

func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 0 {
		return (sorted[middle-1] + sorted[middle]) / 2
	}
	return sorted[middle]
}
