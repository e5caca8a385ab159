//go:build linux

package faults

import (
	"context"
	"errors"
	"math/rand/v2"
	"syscall"
	"time"

	"github.com/holdfast-jobs/holdfast/test/chaos/history"
	"github.com/holdfast-jobs/holdfast/test/chaos/stage"
	"github.com/holdfast-jobs/holdfast/test/rig"
)

// signals hit the processes of the product.
func signals() []Kind {
	return []Kind{
		{Name: "kill-orchestrator", Make: killOrchestrator},
		{Name: "kill-api", Make: killAPI},
		{Name: "kill-host", Make: killHost},
		{Name: "terminate-orchestrator", Make: terminateOrchestrator},
		{Name: "stop-orchestrator", Make: stopOrchestrator},
		{Name: "stop-host", Make: stopHost},
		{Name: "kill-plugin", Make: func(s *Scene, r *rand.Rand) Fault {
			return onPlugin(s, r, syscall.SIGKILL, (*stage.Orchestrator).Processes)
		}},
		{Name: "stop-plugin", Make: func(s *Scene, r *rand.Rand) Fault {
			return onPlugin(s, r, syscall.SIGSTOP, (*stage.Orchestrator).Processes)
		}},
		{Name: "kill-keeper", Make: func(s *Scene, r *rand.Rand) Fault {
			return onPlugin(s, r, syscall.SIGKILL, (*stage.Orchestrator).Keepers)
		}},
		{Name: "stop-keeper", Make: func(s *Scene, r *rand.Rand) Fault {
			return onPlugin(s, r, syscall.SIGSTOP, (*stage.Orchestrator).Keepers)
		}},
	}
}

// restart starts an orchestrator that was ended.
func restart(o *stage.Orchestrator) func(context.Context) error {
	return func(context.Context) error {
		if o.Alive() {
			return nil
		}
		return o.Start()
	}
}

func kill(s *Scene, kind string, o *stage.Orchestrator) func(context.Context) error {
	return func(context.Context) error {
		p := o.Process()
		s.Census.Want(p)
		if err := stage.Send(p, syscall.SIGKILL); err != nil {
			return err
		}
		s.Lost(kind, o, time.Now(), !o.Host.Isolated)
		return nil
	}
}

func killOrchestrator(s *Scene, random *rand.Rand) Fault {
	o := pick(random, s.Workers)
	return Fault{
		Record: history.Fault{Target: o.Name}, Uses: []string{o.Name}, Lasts: between(random, 0, s.Lease),
		Inject: kill(s, "kill-orchestrator", o), Heal: restart(o), hits: o,
	}
}

func killAPI(s *Scene, random *rand.Rand) Fault {
	return Fault{
		Record: history.Fault{Target: s.API.Name}, Uses: []string{s.API.Name}, Lasts: between(random, 0, 2*time.Second),
		Inject: kill(s, "kill-api", s.API), Heal: restart(s.API),
	}
}

// killHost ends everything on a host of its own, as a power failure does.
func killHost(s *Scene, random *rand.Rand) Fault {
	o := s.Workers[len(s.Workers)-1]
	return Fault{
		Record: history.Fault{Target: o.Host.Name}, Uses: []string{o.Name}, Lasts: between(random, 0, 2*s.Lease),
		Inject: func(context.Context) error {
			s.Census.Want(o.Process())
			init, err := rig.ProcessOf(o.Init())
			if err != nil {
				return err
			}
			if err := stage.Send(init, syscall.SIGKILL); err != nil {
				return err
			}
			s.Lost("kill-host", o, time.Now(), !o.Host.Isolated)
			return nil
		},
		Heal: restart(o), hits: o,
	}
}

func terminateOrchestrator(s *Scene, random *rand.Rand) Fault {
	o := pick(random, s.All())
	return Fault{
		Record: history.Fault{Target: o.Name}, Uses: []string{o.Name}, Lasts: 3 * time.Second,
		Inject: func(context.Context) error { s.Census.Want(o.Process()); return o.Signal(syscall.SIGTERM) },
		Heal: func(ctx context.Context) error {
			for o.Alive() {
				select {
				case <-ctx.Done():
					return errors.New(o.Name + " does not end")
				case <-time.After(50 * time.Millisecond):
				}
			}
			return o.Start()
		},
	}
}

// stopAndGoOn stops processes, and lets them go on.
func stopAndGoOn(find func() []rig.Process) (inject, heal func(context.Context) error) {
	var stopped []rig.Process
	inject = func(context.Context) error {
		found := find()
		if len(found) == 0 {
			return errors.New("there is no such process")
		}
		for _, p := range found {
			if stage.Send(p, syscall.SIGSTOP) == nil {
				stopped = append(stopped, p)
			}
		}
		if len(stopped) == 0 {
			return errors.New("none could be stopped")
		}
		return nil
	}
	heal = func(context.Context) error {
		for _, p := range stopped {
			_ = stage.Send(p, syscall.SIGCONT) // it may have been killed meanwhile
		}
		return nil
	}
	return inject, heal
}

func stopOrchestrator(s *Scene, random *rand.Rand) Fault {
	o := pick(random, s.All())
	f := Fault{Record: history.Fault{Target: o.Name, Pause: true}, Uses: []string{o.Name}, Lasts: between(random, time.Second, 2*s.Lease), hits: o}
	f.Inject, f.Heal = stopAndGoOn(func() []rig.Process { return []rig.Process{o.Process()} })
	return f
}

// stopHost stops an orchestrator and everything below it, as a machine that sleeps for
// longer than a lease. The handlers go on first: some end before anybody tells them that
// their leases are lost.
func stopHost(s *Scene, random *rand.Rand) Fault {
	o := pick(random, s.Workers)
	f := Fault{Record: history.Fault{Target: o.Name, Pause: true}, Uses: []string{o.Name}, Lasts: between(random, s.Lease*3/2, s.Lease*5/2), hits: o}
	inject, healHandlers := stopAndGoOn(func() []rig.Process { return o.Processes("") })
	stopRest, heal := stopAndGoOn(func() []rig.Process {
		return append([]rig.Process{o.Process()}, rig.Descendants(o.Process().PID)...)
	})
	f.Inject = func(ctx context.Context) error {
		_ = stage.Send(o.Process(), syscall.SIGSTOP) // so that it replaces no plugin meanwhile
		return errors.Join(stopRest(ctx), inject(ctx))
	}
	f.Heal = func(ctx context.Context) error {
		reports := reportsOf(s, o)
		err := healHandlers(ctx)
		ahead, cancel := context.WithTimeout(ctx, headStart)
		defer cancel()
		reports.await(ahead)
		return errors.Join(err, heal(ctx))
	}
	return f
}

// headStart is how much earlier handlers go on than what watches over them, unless one of
// them reports sooner.
const headStart = 3 * time.Second

// onPlugin sends a signal to the processes that find returns for a plugin.
func onPlugin(s *Scene, random *rand.Rand, signal syscall.Signal, find func(o *stage.Orchestrator, plugin string) []rig.Process) Fault {
	o := pick(random, s.Workers)
	plugin := pick(random, o.Plugins)
	f := Fault{
		Record: history.Fault{Target: o.Name + " " + plugin, PluginOnly: true, Pause: signal == syscall.SIGSTOP},
		Uses:   []string{o.Name + " " + plugin}, Lasts: between(random, time.Second, 2*s.Lease),
	}
	if signal == syscall.SIGSTOP {
		f.Inject, f.Heal = stopAndGoOn(func() []rig.Process { return find(o, plugin) })
		return f
	}
	f.Lasts, f.Heal = 0, nothing
	f.Inject = func(context.Context) error {
		found := find(o, plugin)
		if len(found) == 0 {
			return errors.New("there is no such process")
		}
		s.Census.Want(found[0])
		return stage.Send(found[0], signal)
	}
	return f
}
