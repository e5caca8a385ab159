package plugin

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"

	"github.com/holdfast-jobs/holdfast/plugin/internal/handlerv1"
)

// Part is what Serve takes: a Handler, Version or Concurrency.
type Part interface{ addTo(b *binary) error }

// Version names the version of the binary, for people. Without it, it is the
// version that Go built into the binary.
type Version string

// Concurrency is how many attempts each process of the binary wants at once.
// The orchestrator's configuration wins over it.
type Concurrency int

// binary is everything that one process serves.
type binary struct {
	version     string
	concurrency int
	handlers    map[string]Handler
}

func (h Handler) addTo(b *binary) error {
	if err := h.check(); err != nil {
		return err
	}
	if _, twice := b.handlers[h.jobType]; twice {
		return fmt.Errorf("job type %s has two handlers", h.jobType)
	}
	b.handlers[h.jobType] = h
	return nil
}

func (v Version) addTo(b *binary) error {
	b.version = string(v)
	return nil
}

func (c Concurrency) addTo(b *binary) error {
	if c < 1 {
		return fmt.Errorf("concurrency %d is below 1", c)
	}
	b.concurrency = int(c)
	return nil
}

func assemble(parts []Part) (binary, error) {
	b := binary{version: builtVersion(), handlers: make(map[string]Handler)}
	for _, part := range parts {
		if err := part.addTo(&b); err != nil {
			return b, err
		}
	}
	if len(b.handlers) == 0 {
		return b, errors.New("there is no handler to serve")
	}
	return b, nil
}

// builtVersion is the module's version, or the commit it was built from.
func builtVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	if info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	for _, setting := range info.Settings {
		if setting.Key == "vcs.revision" {
			return setting.Value[:min(12, len(setting.Value))]
		}
	}
	return "devel"
}

func (b binary) types() []string {
	types := make([]string, 0, len(b.handlers))
	for jobType := range b.handlers {
		types = append(types, jobType)
	}
	slices.Sort(types)
	return types
}

func (b binary) manifest() *handlerv1.DescribeResponse {
	m := &handlerv1.DescribeResponse{Version: b.version, Concurrency: uint32(b.concurrency)}
	for _, jobType := range b.types() {
		h := b.handlers[jobType]
		declared := &handlerv1.JobType{
			Name: jobType, Schema: h.schema, MaxAttempts: uint32(h.maxAttempts), TimeoutMs: millis(h.timeout),
		}
		if h.retry != nil {
			declared.Retry = h.retry.wire()
		}
		m.JobTypes = append(m.JobTypes, declared)
	}
	return m
}

// introduce tells somebody who started the binary by hand what it is.
func (b binary) introduce(w io.Writer) {
	path, err := filepath.Abs(os.Args[0])
	if err != nil {
		path = os.Args[0]
	}
	fmt.Fprintf(w, "This is a Holdfast handler plugin, version %s. It serves:\n\n", b.version)
	for _, jobType := range b.types() {
		fmt.Fprintf(w, "  %s\n", jobType)
	}
	fmt.Fprintf(w, `
It is not run by hand: an orchestrator launches it. Add it to config.yaml

  handlers:
    - name: %s
      path: %s

and start the orchestrator.
`, filepath.Base(path), path)
}
