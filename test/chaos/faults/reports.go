//go:build linux

package faults

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/holdfast-jobs/holdfast/test/chaos/history"
	"github.com/holdfast-jobs/holdfast/test/chaos/stage"
)

// reports reads what the handlers of an orchestrator write from a moment on.
type reports struct {
	pattern string
	// sizes are those of the files at that moment.
	sizes map[string]int64
}

func reportsOf(s *Scene, o *stage.Orchestrator) reports {
	r := reports{pattern: filepath.Join(s.Effects, o.Name+"-*.jsonl"), sizes: make(map[string]int64)}
	for _, path := range r.files() {
		if info, err := os.Stat(path); err == nil {
			r.sizes[path] = info.Size()
		}
	}
	return r
}

func (r reports) files() []string {
	found, _ := filepath.Glob(r.pattern) // only a bad pattern is an error
	return found
}

// ended lists the attempts that have ended since then, but not because they were told that
// their leases are lost.
func (r reports) ended() []history.Effect {
	var ended []history.Effect
	for _, path := range r.files() {
		file, err := os.Open(path)
		if err != nil {
			continue
		}
		text, err := io.ReadAll(io.NewSectionReader(file, r.sizes[path], 1<<40))
		_ = file.Close()
		if err != nil {
			continue
		}
		for line := range bytes.Lines(text) {
			var e history.Effect
			// The last line may be half written, the first one half skipped.
			if json.Unmarshal(line, &e) == nil && e.Event == history.Ended && e.Report != history.Lost {
				ended = append(ended, e)
			}
		}
	}
	return ended
}

// await returns when an attempt has ended, or ctx.
func (r reports) await(ctx context.Context) {
	for ctx.Err() == nil && len(r.ended()) == 0 {
		select {
		case <-ctx.Done():
		case <-time.After(20 * time.Millisecond):
		}
	}
}
