//go:build linux

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-jobs/holdfast/test/chaos/faults"
	"github.com/holdfast-jobs/holdfast/test/chaos/history"
)

// atOnce is how many faults may be there at the same time.
const atOnce = 4

// harm injects faults until the time is over and nothing is missing, and returns when all
// are healed.
func (r *run) harm(ctx context.Context) {
	if r.aimed > 0 {
		r.aim(ctx)
		return
	}
	until, cancel := context.WithTimeout(ctx, r.duration)
	defer cancel()
	injected := r.open(ctx)
	for r.alone && injected > 0 && until.Err() == nil {
		r.open(ctx)
	}
	if !r.alone {
		r.shuffle(ctx, until)
	}
	r.makeUp(ctx)
}

// open injects what every run needs, one after the other, and returns how many faults
// these are.
func (r *run) open(ctx context.Context) int {
	kinds := r.possible(faults.Needed())
	r.random.Shuffle(len(kinds), func(i, j int) { kinds[i], kinds[j] = kinds[j], kinds[i] })
	for _, kind := range kinds {
		if ctx.Err() == nil {
			r.inflict(ctx, ctx, r.make(kind))
			wait(ctx, time.Duration(r.random.Int64N(int64(time.Second))))
		}
	}
	return len(kinds)
}

// shuffle injects faults of all kinds, some at once, until the time is over.
func (r *run) shuffle(ctx, until context.Context) {
	kinds := r.possible(faults.Kinds())
	if len(kinds) == 0 {
		return
	}
	desk := newDesk()
	var all sync.WaitGroup
	defer all.Wait()
	var deck []faults.Fault
	for until.Err() == nil {
		// Each kind once, in a new order each time. Those that must wait for others are
		// overtaken, but not for long.
		if len(deck) < len(kinds)/2+1 {
			r.random.Shuffle(len(kinds), func(i, j int) { kinds[i], kinds[j] = kinds[j], kinds[i] })
			for _, kind := range kinds {
				deck = append(deck, r.make(kind))
			}
		}
		i, ok := desk.take(until, deck)
		if !ok {
			return
		}
		fault := deck[i]
		deck = slices.Delete(deck, i, i+1)
		all.Go(func() {
			defer desk.give(fault.Uses)
			r.inflict(ctx, until, fault)
		})
		select {
		case <-until.Done():
		case <-time.After(time.Duration(r.random.Int64N(int64(2 * time.Second)))):
		}
	}
}

// make makes a fault of the kind.
func (r *run) make(kind faults.Kind) faults.Fault {
	fault := kind.Make(r.scene, rand.New(rand.NewPCG(r.random.Uint64(), 0))) //nolint:gosec // repeatable
	fault.Record.Kind = kind.Name
	return fault
}

// possible lists those of the kinds that this run can have.
func (r *run) possible(all []faults.Kind) []faults.Kind {
	only := strings.FieldsFunc(r.only, func(c rune) bool { return c == ',' })
	var kinds []faults.Kind
	for _, kind := range all {
		if len(only) > 0 && !slices.Contains(only, kind.Name) {
			continue
		}
		if kind.Missing != nil {
			if why := kind.Missing(r.scene); why != "" {
				if !r.noted[kind.Name] {
					fmt.Printf("note: no %s: %s\n", kind.Name, why)
				}
				r.noted[kind.Name] = true
				continue
			}
		}
		kinds = append(kinds, kind)
	}
	return kinds
}

// inflict injects the fault, waits, heals it and records it. It heals early when until
// ends, and in haste when ctx ends, because everything is about to be thrown away.
func (r *run) inflict(ctx, until context.Context, fault faults.Fault) {
	record := fault.Record
	record.Injected = r.now()
	r.log.Info("inject", "kind", record.Kind, "target", record.Target, "parameters", record.Parameters, "lasts", fault.Lasts)
	bounded, cancel := afterwards(ctx, healWithin)
	if err := fault.Inject(bounded); err != nil {
		record.Error = err.Error()
		r.log.Warn("not injected", "kind", record.Kind, "error", err)
	}
	cancel()
	if record.Error == "" {
		record.Standing = r.now()
		select {
		case <-until.Done():
		case <-time.After(fault.Lasts):
		}
		if fault.Until != nil {
			waiting, cancel := afterwards(ctx, healWithin)
			if err := fault.Until(waiting); err != nil {
				r.log.Error("waited in vain", "kind", record.Kind, "error", err)
				fmt.Printf("note: %s of %s did not have its effect: %v\n", record.Kind, record.Target, err)
			}
			cancel()
		}
		record.Healing = r.now()
	}
	healing, cancel := afterwards(ctx, healWithin)
	defer cancel()
	if err := fault.Heal(healing); err != nil {
		r.log.Error("not healed", "kind", record.Kind, "error", err)
		fmt.Printf("note: %s of %s was not healed: %v\n", record.Kind, record.Target, err)
	}
	record.Healed = r.now()
	r.log.Info("healed", "kind", record.Kind, "target", record.Target)
	if err := r.faults.Append(record); err != nil {
		r.log.Error("not recorded", "error", err)
	}
	r.mu.Lock()
	r.injected = append(r.injected, record)
	r.mu.Unlock()
}

// afterwards is a context that lasts for so long, or for a little while after ctx.
func afterwards(ctx context.Context, within time.Duration) (context.Context, context.CancelFunc) {
	lasting, cancel := context.WithTimeout(context.WithoutCancel(ctx), within)
	const haste = 3 * time.Second
	forget := context.AfterFunc(ctx, func() { time.AfterFunc(haste, cancel) })
	return lasting, func() { forget(); cancel() }
}

// aim fails over again and again, in the two ways that lost acknowledged jobs once.
func (r *run) aim(ctx context.Context) {
	ways := []faults.Kind{{Name: "stall-cut-failover", Make: faults.StallCut}, {Name: "stall-cancel-failover", Make: faults.StallCancel}}
	for n := 0; ctx.Err() == nil && n < 2*len(ways)*r.aimed; n++ {
		r.mu.Lock()
		done := failovers(r.injected)
		r.mu.Unlock()
		if done == len(ways)*r.aimed {
			return
		}
		// One that could not be injected is tried again.
		fault := r.make(ways[done%len(ways)])
		fault.Lasts = time.Second
		before := r.load.Accepted()
		r.inflict(ctx, ctx, fault)
		// Something must be accepted between two failovers.
		for deadline := time.Now().Add(healWithin); r.load.Accepted() < before+20 && time.Now().Before(deadline) && ctx.Err() == nil; {
			time.Sleep(20 * time.Millisecond)
		}
	}
}

// desk lends what faults use.
type desk struct {
	mu      sync.Mutex
	used    map[string]bool
	running int
	changed chan struct{}
}

func newDesk() *desk { return &desk{used: make(map[string]bool), changed: make(chan struct{})} }

// take waits until everything is free that one of the faults uses, takes it for the first
// such fault, and returns its index; it returns false if ctx ends before.
func (d *desk) take(ctx context.Context, deck []faults.Fault) (int, bool) {
	for {
		d.mu.Lock()
		taken := func(name string) bool { return d.used[name] }
		i := slices.IndexFunc(deck, func(f faults.Fault) bool { return !slices.ContainsFunc(f.Uses, taken) })
		if d.running < atOnce && i >= 0 {
			d.running++
			for _, name := range deck[i].Uses {
				d.used[name] = true
			}
			d.mu.Unlock()
			return i, true
		}
		changed := d.changed
		d.mu.Unlock()
		select {
		case <-ctx.Done():
			return 0, false
		case <-changed:
		}
	}
}

func (d *desk) give(uses []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.running--
	for _, name := range uses {
		delete(d.used, name)
	}
	close(d.changed)
	d.changed = make(chan struct{})
}

// failovers counts the faults after which another server was the primary.
func failovers(all []history.Fault) int {
	n := 0
	for _, f := range all {
		if f.Failover && f.Error == "" {
			n++
		}
	}
	return n
}
