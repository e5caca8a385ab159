//go:build linux

package faults

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"time"

	"github.com/holdfast-jobs/holdfast/test/chaos/history"
	"github.com/holdfast-jobs/holdfast/test/chaos/stage"
)

// operators do what is allowed, at a bad time.
func operators() []Kind {
	return []Kind{
		{Name: "pause-type", Make: pauseType},
		{Name: "pause-all", Make: pauseAll},
		{Name: "limit-type", Make: limit("type", "CHAOS_GOOD", "CHAOS_SLOW", "CHAOS_NODE")},
		{Name: "limit-tenant", Make: limit("tenant", "acme", "default")},
		{Name: "schedule", Make: schedule},
	}
}

// asked is a fault that one call injects and another one heals.
func asked(s *Scene, target string, lasts time.Duration, path string, body any) Fault {
	parameters := map[string]string{"asked": fmt.Sprint(body)}
	return Fault{
		Record: history.Fault{Target: target, Parameters: parameters}, Uses: []string{path}, Lasts: lasts,
		Inject: func(ctx context.Context) (err error) {
			for _, o := range s.All() {
				if err = call(ctx, s, o, http.MethodPut, path, body, http.StatusOK); err == nil {
					return nil
				}
				parameters[history.Unanswered] = err.Error()
			}
			return err
		},
		Heal: func(ctx context.Context) error {
			return untilDone(ctx, func(ctx context.Context) error {
				err := call(ctx, s, nil, http.MethodDelete, path, nil, http.StatusOK)
				if err == nil {
					return nil
				}
				// The call that got no answer may have done it.
				if gone := call(ctx, s, nil, http.MethodDelete, path, nil, http.StatusNotFound); gone == nil {
					return nil
				}
				return err
			})
		},
	}
}

func pauseType(s *Scene, random *rand.Rand) Fault {
	jobType := pick(random, s.served("CHAOS_GOOD", "CHAOS_SLOW", "CHAOS_PYTHON", "CHAOS_NODE"))
	body := map[string]any{"reason": "chaos", "drain": random.IntN(2) == 0}
	return asked(s, jobType, between(random, s.Lease, 2*s.Lease), "/debug/pauses/type/"+jobType, body)
}

// served are those of the types that a plugin of the run has.
func (s *Scene) served(types ...string) []string {
	return slices.DeleteFunc(slices.Clone(types), func(name string) bool {
		return !slices.ContainsFunc(s.Plugins, func(p stage.Plugin) bool { return slices.Contains(p.Types, name) })
	})
}

func pauseAll(s *Scene, random *rand.Rand) Fault {
	return asked(s, "all", between(random, time.Second, s.Lease), "/debug/pauses/all", map[string]any{"reason": "chaos"})
}

func limit(scope string, names ...string) func(*Scene, *rand.Rand) Fault {
	return func(s *Scene, random *rand.Rand) Fault {
		name := pick(random, names)
		if scope == "type" {
			name = pick(random, s.served(names...))
		}
		body := map[string]any{"concurrency": 1 + random.IntN(10)}
		if random.IntN(2) == 0 {
			body = map[string]any{"rate": "30/1s", "burst": 5}
		}
		fault := asked(s, scope+" "+name, between(random, time.Second, 2*s.Lease), "/debug/limits/"+scope+"/"+name, body)
		if most, ok := body["concurrency"]; ok {
			fault.Record.Parameters[history.Concurrency] = fmt.Sprint(most)
		}
		return fault
	}
}

// every is the time between two ticks of a schedule.
const every = time.Second

// schedule has a tick every second for a while.
func schedule(s *Scene, random *rand.Rand) Fault {
	name := fmt.Sprintf("chaos-%d", random.IntN(1_000_000))
	overlap := pick(random, []string{"allow", "allow", "skip", "queue"})
	body := map[string]any{
		"every": every.String(), "overlap": overlap, "catchUp": "all",
		"job": map[string]any{"jobType": stage.TickType, "payload": map[string]any{"mark": history.TickMark, "millis": 100, "plan": []string{"succeeds"}}},
	}
	fault := asked(s, name, between(random, s.Lease, 4*s.Lease), "/schedules/"+name, body)
	if overlap == "allow" {
		fault.Record.Parameters[history.Every] = every.String()
	}
	return fault
}
