//go:build linux

package faults

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-jobs/holdfast/test/chaos/history"
	"github.com/holdfast-jobs/holdfast/test/chaos/stage"
)

// plugins hit the files of plugins, or what operators do with them.
func plugins() []Kind {
	return []Kind{
		{Name: "hot-swap", Make: hotSwap},
		{Name: "bad-swap", Make: badSwap},
		{Name: "restart-plugin", Make: func(s *Scene, r *rand.Rand) Fault { return onPluginBy(s, r, "restart", "") }},
		{Name: "disable-plugin", Make: func(s *Scene, r *rand.Rand) Fault { return onPluginBy(s, r, "disable", "enable") }},
	}
}

func anyPlugin(s *Scene, random *rand.Rand) (*stage.Orchestrator, stage.Plugin) {
	o := pick(random, s.Workers)
	name := pick(random, o.Plugins)
	i := slices.IndexFunc(s.Plugins, func(p stage.Plugin) bool { return p.Name == name })
	return o, s.Plugins[i]
}

// hotSwap replaces the file of a plugin, which watches it, by another version.
func hotSwap(s *Scene, random *rand.Rand) Fault {
	o, plugin := anyPlugin(s, random)
	version := strconv.Itoa(random.IntN(1_000_000))
	return Fault{
		Record: history.Fault{Target: o.Name + " " + plugin.Name, PluginOnly: true, Parameters: map[string]string{"version": version}},
		Uses:   []string{o.Name + " " + plugin.Name + " file"}, Lasts: between(random, time.Second, 2*s.Lease),
		Inject: func(context.Context) error { return o.Replace(plugin, version) }, Heal: nothing,
	}
}

// badSwap replaces it by a file that does not work.
func badSwap(s *Scene, random *rand.Rand) Fault {
	o, plugin := anyPlugin(s, random)
	return Fault{
		Record: history.Fault{Target: o.Name + " " + plugin.Name, PluginOnly: true},
		Uses:   []string{o.Name + " " + plugin.Name + " file"}, Lasts: between(random, time.Second, 2*s.Lease),
		Inject: func(context.Context) error { return o.Spoil(plugin.Name) },
		Heal:   func(context.Context) error { return o.Replace(plugin, "healed") },
	}
}

// onPluginBy uses the API.
func onPluginBy(s *Scene, random *rand.Rand, inject, heal string) Fault {
	o, plugin := anyPlugin(s, random)
	post := func(verb string) func(context.Context) error {
		return func(ctx context.Context) error {
			err := call(ctx, s, o, http.MethodPost, "/debug/plugins/"+plugin.Name+"/"+verb, nil, http.StatusOK)
			if err != nil && strings.Contains(err.Error(), "answered 202") { // it goes on
				return nil
			}
			return err
		}
	}
	f := Fault{
		Record: history.Fault{Target: o.Name + " " + plugin.Name, PluginOnly: true}, Uses: []string{o.Name + " " + plugin.Name},
		Lasts: between(random, 0, s.Lease), Inject: post(inject), Heal: nothing,
	}
	if heal != "" {
		f.Heal = func(ctx context.Context) error { return untilDone(ctx, post(heal)) }
	}
	return f
}

// call asks an orchestrator, or any if it is nil.
func call(ctx context.Context, s *Scene, o *stage.Orchestrator, method, path string, body any, want int) error {
	all := []*stage.Orchestrator{o}
	if o == nil {
		all = s.All()
	}
	err := errors.New("nobody to ask")
	for _, one := range all {
		within, cancel := context.WithTimeout(ctx, 8*time.Second)
		err = one.Call(within, method, path, body, want, nil)
		cancel()
		if err == nil {
			return nil
		}
	}
	return err
}

// untilDone repeats what heals, because other faults may be in its way.
func untilDone(ctx context.Context, do func(context.Context) error) error {
	for {
		err := do(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(200 * time.Millisecond):
		}
	}
}
