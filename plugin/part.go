package plugin

import (
	"errors"
	"fmt"
	"runtime/debug"
)

// Part is what Serve takes: a Handler, Version, Concurrency or OnDrain.
type Part interface{ addTo(b *binary) error }

// Version names the version of the binary, for people. Without it, it is the
// version that Go built into the binary.
type Version string

// Concurrency is how many attempts each process wants at once: of all its job
// types as a part of Serve, of one job type as an option of its handler. The
// orchestrator keeps to both; what is more waits in its queue. Its configuration
// wins over the former.
type Concurrency int

// Bounds of what the orchestrator accepts.
const (
	maxVersion     = 200 // bytes
	maxConcurrency = 10_000
)

// binary is everything that one process serves.
type binary struct {
	version     string
	concurrency int
	handlers    map[string]Handler
	onDrain     []OnDrain
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

func (h Handler) addTo(b *binary) error {
	if h.problem != nil {
		return h.problem
	}
	if h.run == nil {
		return errors.New("a handler was not made by Handle or HandleResult")
	}
	if _, twice := b.handlers[h.jobType]; twice {
		return fmt.Errorf("job type %q has two handlers", h.jobType)
	}
	b.handlers[h.jobType] = h
	return nil
}

func (v Version) addTo(b *binary) error {
	if v == "" || len(v) > maxVersion || !printable(string(v)) {
		return fmt.Errorf("version %.40q is empty, longer than %d bytes or not printable", v, maxVersion)
	}
	b.version = string(v)
	return nil
}

func (c Concurrency) addTo(b *binary) error {
	if err := c.check(); err != nil {
		return err
	}
	b.concurrency = int(c)
	return nil
}

func (c Concurrency) set(h *Handler) {
	if err := c.check(); err != nil {
		h.reject("%w", err)
		return
	}
	h.concurrency = int(c)
}

func (c Concurrency) check() error {
	if c < 1 || c > maxConcurrency {
		return fmt.Errorf("concurrency %d is not between 1 and %d", c, maxConcurrency)
	}
	return nil
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
