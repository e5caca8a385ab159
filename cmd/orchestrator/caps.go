package main

import (
	"fmt"

	"github.com/holdfast-jobs/holdfast/plugin/host"
)

// minCap leaves room for what a handler cannot well do without, such as a
// percentage.
const minCap = 1 << 10

// caps are the largest values that handlers may report.
func (c jobsConfig) caps() host.Caps {
	return host.Caps{Progress: c.MaxProgressBytes, Checkpoint: c.MaxCheckpointBytes, Result: c.MaxResultBytes}
}

func (c jobsConfig) checkCaps() error {
	for _, one := range []struct {
		key   string
		bytes int
	}{
		{"max_progress_bytes", c.MaxProgressBytes},
		{"max_checkpoint_bytes", c.MaxCheckpointBytes},
		{"max_result_bytes", c.MaxResultBytes},
	} {
		if one.bytes < minCap || one.bytes > host.MaxCap {
			return fmt.Errorf("%s: %d is not from %d to %d", one.key, one.bytes, minCap, host.MaxCap)
		}
	}
	return nil
}
