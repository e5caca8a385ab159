//go:build linux

package stage

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/holdfast-jobs/holdfast/test/sdktest"
)

// TickType is the job type of schedules, which no client submits.
const TickType = "CHAOS_TICK"

// Plugin is a plugin that orchestrators of the run can have.
type Plugin struct {
	// Name is also that of the file in an orchestrator's directory of plugins.
	Name string
	// Types are its job types.
	Types []string
	// Source is the file that is copied there.
	Source string
	// Environment is for its processes, beside where to leave their effects.
	Environment map[string]string
	Concurrency int
	// Timeout is how long each attempt may take; 0 for the default.
	Timeout time.Duration
	// Deaf says that its handlers do not stop when they are asked to.
	Deaf bool
}

// hostileTimeout is shorter than the work of some hostile jobs.
const hostileTimeout = 3 * time.Second

// Catalogue lists the plugins that this machine can run: those in Go, and those in
// Python and Node.js if they are wanted and their SDKs can be installed below dir. The
// notes say what is missing.
func Catalogue(ctx context.Context, dir, programs, scripts, modules string, interpreted bool) (plugins []Plugin, notes []string) {
	binary := filepath.Join(programs, "handlers")
	plugins = []Plugin{
		{Name: "good", Types: []string{"CHAOS_GOOD", "CHAOS_SLOW", TickType}, Source: binary, Environment: map[string]string{"ROLE": "good"}, Concurrency: 40},
		{Name: "crashing", Types: []string{"CHAOS_CRASH"}, Source: binary, Environment: map[string]string{"ROLE": "crashing"}, Concurrency: 4},
		{Name: "hostile", Types: []string{"CHAOS_HOSTILE"}, Source: binary, Environment: map[string]string{"ROLE": "hostile", "TIMEOUT": hostileTimeout.String()}, Concurrency: 4, Timeout: hostileTimeout, Deaf: true},
	}
	if !interpreted {
		return plugins, nil
	}
	interpreter, err := sdktest.Python(ctx, filepath.Join(dir, "python"))
	if err == nil {
		err = startsSoon(ctx, dir, interpreter, "-c", "import holdfast")
	}
	if err == nil {
		plugins = append(plugins, Plugin{
			Name: "python.py", Types: []string{"CHAOS_PYTHON"}, Source: filepath.Join(scripts, "handler.py"), Concurrency: 10,
			Environment: map[string]string{"PATH": filepath.Dir(interpreter) + ":/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1"},
		})
	} else {
		notes = append(notes, "no handlers in Python: "+err.Error())
	}
	interpreter, err = sdktest.Node(ctx, dir, modules)
	if err == nil {
		err = startsSoon(ctx, dir, interpreter, "--input-type=module", "--eval", "import '@holdfast-jobs/holdfast'")
	}
	if err == nil {
		plugins = append(plugins, Plugin{
			Name: "node.mjs", Types: []string{"CHAOS_NODE"}, Source: filepath.Join(scripts, "handler.mjs"), Concurrency: 10,
			Environment: map[string]string{"PATH": filepath.Dir(interpreter) + ":/usr/bin:/bin"},
		})
	} else {
		notes = append(notes, "no handlers in Node.js: "+err.Error())
	}
	return plugins, notes
}

// soon is how long an interpreter may take to load the SDK: a plugin has ten seconds to start,
// and the run makes the machine busy.
const soon = 5 * time.Second

// startsSoon fails if the interpreter needs longer than soon for the program, or cannot run it.
func startsSoon(ctx context.Context, dir, interpreter string, program ...string) error {
	cmd := exec.CommandContext(ctx, interpreter, program...)
	cmd.Dir = dir
	began := time.Now()
	if said, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", interpreter, err, said)
	}
	if took := time.Since(began); took > soon {
		return fmt.Errorf("this machine takes %s to load the SDK", took.Round(time.Millisecond))
	}
	return nil
}

// Install gives the orchestrator the plugin. Its handlers leave their effects in a file of
// the directory.
func (o *Orchestrator) Install(p Plugin, effects string) error {
	if err := o.Replace(p, "0"); err != nil {
		return err
	}
	at := fmt.Sprintf("plugins.%d.", len(o.Plugins))
	o.Plugins = append(o.Plugins, p.Name)
	o.Set(at + "name=" + p.Name)
	o.Set(at + "path=" + o.PluginFile(p.Name))
	o.Set(at + fmt.Sprintf("concurrency=%d", p.Concurrency))
	o.Set(at + "env.EFFECTS=" + filepath.Join(effects, o.Name+"-"+p.Name+".jsonl"))
	for name, value := range p.Environment {
		o.Set(at + "env." + name + "=" + value)
	}
	return nil
}

// Replace puts another version of the plugin in the place of its file.
func (o *Orchestrator) Replace(p Plugin, version string) error {
	text, err := os.ReadFile(p.Source)
	if err != nil {
		return err
	}
	// A comment in a script; what follows a program is not loaded.
	comment := "\n# version "
	if filepath.Ext(p.Name) == ".mjs" {
		comment = "\n// version "
	}
	return o.put(p.Name, append(text, comment+version+"\n"...))
}

// Spoil puts a file in the place of the plugin's that does not work.
func (o *Orchestrator) Spoil(plugin string) error {
	return o.put(plugin, []byte("#!/bin/sh\nexit 3\n"))
}

func (o *Orchestrator) put(plugin string, text []byte) error {
	path := o.PluginFile(plugin)
	err := os.WriteFile(path+".new", text, 0o755) //nolint:gosec // a program
	return errors.Join(err, os.Rename(path+".new", path))
}
