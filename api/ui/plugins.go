package ui

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/holdfast-jobs/holdfast/api/ui/client"
	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

func (s *site) plugins(r chi.Router) {
	r.Get("/plugins", s.serve(showPlugins))
	r.Get("/plugins/{plugin}", s.serve(showPlugin))
	r.Get("/plugins/{plugin}/force", s.serve(askForce))
	r.Post("/plugins/{plugin}/{command}", s.serve(commandPlugin))
}

// pluginRow is a plugin at one orchestrator.
type pluginRow struct {
	v1.Plugin
	Worker, Host string
	Condition    job.Condition
}

// Key identifies the row on its page. It has no spaces.
func (p pluginRow) Key() string { return url.QueryEscape(p.Worker + "." + p.Name) }

// Path is the page of the plugin, or one below it.
func (p pluginRow) Path(below ...string) string { return pluginPath(p.Name, below...) }

func pluginPath(name string, below ...string) string {
	return Root + client.Path(append([]string{"plugins", name}, below...)...)
}

// WorkerPath is the page of its orchestrator.
func (p pluginRow) WorkerPath() string { return Root + client.Path("workers", p.Worker) }

// Slots are those of the processes that serve.
func (p pluginRow) Slots() int { return p.Running + p.Free }

// Class is the colour of its state.
func (p pluginRow) Class() string {
	return map[job.PluginState]string{job.PluginUp: "ok", job.PluginBroken: "problem", job.PluginStarting: "warning", job.PluginDisabled: "paused"}[p.State]
}

// Disabled reports whether an operator has disabled it.
func (p pluginRow) Disabled() bool { return p.State == job.PluginDisabled }

// Reason is why the latest swap ended as it did, or why the file is skipped.
func (p pluginRow) Reason() string {
	switch {
	case p.LastSwap != nil && p.LastSwap.Reason != "":
		return sentence(p.LastSwap.Reason)
	case p.SkipReason != "":
		return "Its file is skipped: " + sentence(p.SkipReason)
	case p.State != job.PluginUp && p.LastError != "":
		return sentence(p.LastError)
	}
	return ""
}

// pluginRows are the plugins of all orchestrators, by name; those with the name only, unless it
// is empty.
func pluginRows(found v1.PluginsEverywhere, name string) (rows []pluginRow) {
	for _, o := range found.Orchestrators {
		for _, p := range o.Plugins {
			if name == "" || p.Name == name {
				rows = append(rows, pluginRow{Plugin: p, Worker: o.WorkerID, Host: o.Host, Condition: o.Condition})
			}
		}
	}
	slices.SortStableFunc(rows, func(a, b pluginRow) int { return strings.Compare(a.Name, b.Name) })
	return rows
}

// plugins is the matrix of plugins and orchestrators.
type plugins struct {
	Rows        []pluginRow
	At, Failing time.Time
}

func showPlugins(v *visit) (answer, error) {
	found, err := shared[v1.PluginsEverywhere](v, client.Path("debug", "plugins", "everywhere"), nil)
	if err != nil {
		return nil, err
	}
	shown := plugins{Rows: pluginRows(*found.Value, "")}
	shown.At, shown.Failing = oldest(time.Time{}, time.Time{}, found)
	return view{Template: "plugins", Title: "Plugins", Data: shown}, nil
}

// pluginPage is one plugin at all orchestrators, with what has happened to it.
type pluginPage struct {
	plugins
	Name     string
	JobTypes []string
	Events   []pluginEvent
	// Older leads to earlier events; empty if there are none.
	Older string
	// Command is the one that was asked for last on this page; nil for none.
	Command *v1.PluginCommand
}

// pluginEvent is an event with its place in the colours.
type pluginEvent struct{ v1.PluginEvent }

// Label is the kind in words.
func (e pluginEvent) Label() string {
	text := strings.ReplaceAll(string(e.Event), "_", " ")
	return strings.ToUpper(text[:1]) + text[1:]
}

// Class is the colour of its kind.
func (e pluginEvent) Class() string {
	switch e.Event {
	case job.PluginPromoted, job.PluginTrialPassed, job.PluginMended:
		return "ok"
	case job.PluginRolledBack, job.PluginRefused, job.PluginTrialFailed, job.PluginLaunchFailed, job.PluginCrashed, job.PluginBroke:
		return "problem"
	case job.PluginKilled, job.PluginAbandoned, job.PluginFileSkipped, job.PluginEventsLost:
		return "warning"
	case job.PluginStarted, job.PluginSwapBegan, job.PluginTrialBegan, job.PluginWasDisabled, job.PluginWasEnabled:
	}
	return ""
}

// Path is the page of the plugin.
func (p pluginPage) Path(below ...string) string { return pluginPath(p.Name, below...) }

// maxShownEvents is how many events a page shows.
const maxShownEvents = "50"

func showPlugin(v *visit) (answer, error) {
	name := v.param("plugin")
	found, err := shared[v1.PluginsEverywhere](v, client.Path("debug", "plugins", "everywhere"), nil)
	if err != nil {
		return nil, err
	}
	query := url.Values{"plugin": {name}, "limit": {maxShownEvents}}
	if cursor := v.query("cursor"); cursor != "" {
		query.Set("cursor", cursor)
	}
	events, err := shared[v1.PluginEventList](v, client.Path("debug", "plugins", "events"), query)
	if err != nil {
		return nil, err
	}
	shown := pluginPage{plugins: plugins{Rows: pluginRows(*found.Value, name)}, Name: name}
	shown.At, shown.Failing = oldest(time.Time{}, time.Time{}, found)
	shown.At, shown.Failing = oldest(shown.At, shown.Failing, events)
	if len(shown.Rows) == 0 && len(events.Value.Events) == 0 {
		return nil, v1.NewProblem(http.StatusNotFound, "no orchestrator has a plugin of that name")
	}
	for _, e := range events.Value.Events {
		shown.Events = append(shown.Events, pluginEvent{e})
	}
	for _, row := range shown.Rows {
		for _, jobType := range row.JobTypes {
			if !slices.Contains(shown.JobTypes, jobType) {
				shown.JobTypes = append(shown.JobTypes, jobType)
			}
		}
	}
	if next := events.Value.NextCursor; next != "" {
		shown.Older = shown.Path() + "?cursor=" + url.QueryEscape(next)
	}
	if id := v.query("command"); id != "" {
		shown.Command = new(v1.PluginCommand)
		if err := v.get(client.Path("debug", "plugins", "commands", id), nil, shown.Command); err != nil {
			return nil, err
		}
	}
	return view{Template: "plugin", Title: "Plugin " + name, Data: shown}, nil
}

// forcing is the question whether to use force.
type forcing struct{ Name, Worker string }

// Path is the page of the plugin, or one below it.
func (f forcing) Path(below ...string) string { return pluginPath(f.Name, below...) }

func askForce(v *visit) (answer, error) {
	name := v.param("plugin")
	return view{Template: "pluginforce", Title: "Force plugin " + name, Data: forcing{Name: name, Worker: v.query("worker")}}, nil
}

// commandPlugin asks all orchestrators, or the one that the form names.
func commandPlugin(v *visit) (answer, error) {
	name, command := v.param("plugin"), v.param("command")
	var asked v1.PluginCommand
	spec := v1.PluginCommandSpec{Command: command, Force: v.form("force") == "on", Worker: v.form("worker")}
	if err := v.send(http.MethodPost, client.Path("debug", "plugins", name, "commands"), spec, &asked); err != nil {
		return nil, err
	}
	verbs := map[job.PluginVerb]string{job.SwapPlugin: "Swap", job.RestartPlugin: "Restart", job.DisablePlugin: "Disable", job.EnablePlugin: "Enable"}
	done := back{
		To:     pluginPath(name) + "?command=" + asked.CommandID.String(),
		Notice: fmt.Sprintf("%s %s: asked %s.", verbs[job.PluginVerb(command)], name, plural(len(asked.Outcomes), "orchestrator", "orchestrators")),
	}
	opposite := map[job.PluginVerb]string{job.DisablePlugin: "enable", job.EnablePlugin: "disable"}[job.PluginVerb(command)]
	if opposite != "" {
		done.Undo = &undo{To: pluginPath(name, opposite), Fields: map[string]string{"worker": spec.Worker}}
	}
	return done, nil
}

// limitRow is a limit of a plugin, or what could be limited, with what its processes use.
type limitRow struct {
	Limit, Value, By, Gap string
	Uses                  []limitUse
}

// limitUse is what one process uses of a limit.
type limitUse struct {
	PID  int
	Text string
}

// LimitRows are what is limited or measured. What is not measured has no uses.
func (p pluginRow) LimitRows() []limitRow {
	measured := map[string]func(v1.PluginUse) float64{
		"memory":    func(u v1.PluginUse) float64 { return float64(u.Memory) },
		"cpus":      func(u v1.PluginUse) float64 { return u.CPUs },
		"processes": func(u v1.PluginUse) float64 { return float64(u.Processes) },
	}
	var rows []limitRow
	for _, name := range []string{"memory", "cpus", "processes", "open_files"} {
		row := limitRow{Limit: strings.ReplaceAll(name, "_", " "), Value: "no limit"}
		limit := 0.
		if at := slices.IndexFunc(p.Limits, func(l v1.Enforcement) bool { return l.Limit == name }); at >= 0 {
			l := p.Limits[at]
			limit, row.Value, row.By, row.Gap = l.Value, quantity(name, l.Value), l.By, l.Gap
		}
		of := measured[name]
		if of == nil && limit == 0 {
			continue
		}
		for _, use := range p.Use {
			if of != nil {
				row.Uses = append(row.Uses, limitUse{PID: use.PID, Text: quantity(name, of(use)) + share(of(use), limit)})
			}
		}
		rows = append(rows, row)
	}
	return rows
}

// quantity is a value of a limit with its unit.
func quantity(limit string, value float64) string {
	switch limit {
	case "memory":
		return fmt.Sprintf("%.4g MiB", value/(1<<20))
	case "cpus":
		return fmt.Sprintf("%g", value)
	}
	return count(int64(value))
}

// share is how much of the limit is used; empty if there is none.
func share(used, limit float64) string {
	if limit <= 0 {
		return ""
	}
	return fmt.Sprintf(" (%.0f %%)", 100*used/limit)
}
