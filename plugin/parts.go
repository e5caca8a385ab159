package plugin

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"
)

// Part is what Serve takes: a Handler, Version, Concurrency or OnDrain.
type Part interface{ addTo(b *binary) error }

// Version is the version of the plugin, for people to read. The default is the
// version that Go has built into it.
type Version string

// Concurrency is how many attempts run at once in each process. As a part of
// Serve it counts the attempts of all job types; as an option of a handler, those
// of its job type. Further jobs wait in the orchestrator's queue. The
// orchestrator's configuration wins over the part of Serve, not over the option.
type Concurrency int

// OnDrain is called when the process has done its last attempt and is about to
// exit: the place to send what is buffered, or to close what all handlers share.
// The context ends after one second, and the process exits then in any case. It is
// not called when the process is killed or its orchestrator is gone. Several run at
// the same time.
type OnDrain func(ctx context.Context)

// Bounds that the orchestrator checks too.
const (
	maxVersion     = 200 // bytes
	maxConcurrency = 10_000
)

// drainWithin is how long the functions of OnDrain may take. The orchestrator
// waits a little longer for the process to exit.
const drainWithin = time.Second

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

func (f OnDrain) addTo(b *binary) error {
	if f == nil {
		return errors.New("the function of OnDrain is nil")
	}
	b.onDrain = append(b.onDrain, f)
	return nil
}

// leave calls the functions of OnDrain, and returns when they have or their time
// is up.
func (b *binary) leave() {
	ctx, cancel := context.WithTimeout(context.Background(), drainWithin)
	defer cancel()
	var calls sync.WaitGroup
	for _, f := range b.onDrain {
		calls.Go(func() { f(ctx) })
	}
	done := make(chan struct{})
	go func() {
		calls.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-ctx.Done():
	}
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
