//go:build linux

package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

const (
	// told is how many lines of a log are printed when a run has failed, and toldWidth how
	// many bytes of each.
	told, toldWidth = 25, 300
	// kept is how many bytes of each orchestrator's log stay with the record.
	kept = 4 << 20
)

// tellEnd prints the last lines of the run's log that tell of something odd.
func tellEnd(path string, seed uint64) {
	text, err := os.ReadFile(path)
	if err != nil {
		fmt.Println("note: no log:", err)
		return
	}
	lines := slices.DeleteFunc(bytes.Split(text, []byte("\n")), func(line []byte) bool {
		return !bytes.Contains(line, []byte(" level=WARN ")) && !bytes.Contains(line, []byte(" level=ERROR "))
	})
	fmt.Printf("the run with the seed %d failed; the last warnings and errors of %s:\n", seed, path)
	for _, line := range lines[max(0, len(lines)-told):] {
		fmt.Printf("  %s\n", line[:min(len(line), toldWidth)])
	}
}

// keepLogs copies the ends of the orchestrators' logs to the record.
func (r *run) keepLogs() {
	logs, _ := filepath.Glob(filepath.Join(r.scratch, "hosts", "*", "log")) // only a bad pattern is an error
	for _, path := range logs {
		text, err := os.ReadFile(path)
		if err == nil {
			name := "log-" + filepath.Base(filepath.Dir(path))
			err = os.WriteFile(filepath.Join(r.dir, name), text[max(0, len(text)-kept):], 0o644) //nolint:gosec // read by all
		}
		if err != nil {
			r.log.Warn("a log is not kept", "path", path, "error", err)
		}
	}
}
