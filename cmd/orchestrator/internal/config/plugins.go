package config

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-jobs/holdfast/plugin/host"
)

// inherited are the variables that plugins inherit from the orchestrator. List
// all others under env.
var inherited = []string{"PATH", "HOME", "TMPDIR", "TZ", "LANG"}

// The canary of a new version, unless you configure it.
const (
	defaultCanaryShare  = 0.1
	defaultCanaryPeriod = 3 * time.Second
	defaultMaxSlowdown  = 3
)

// reference matches ${NAME}, and $${NAME}, which stands for the text ${NAME}.
var reference = regexp.MustCompile(`\$?\$\{([^}]*)\}`)

// Plugin is one plugin: a program that contains handlers.
type Plugin struct {
	Name         string            `koanf:"name"`
	Path         string            `koanf:"path"`
	Args         []string          `koanf:"args" show:"no"`
	Env          map[string]string `koanf:"env" show:"no"`
	Processes    *int              `koanf:"processes"`
	Concurrency  *int              `koanf:"concurrency"`
	Types        []string          `koanf:"types"`
	Isolated     *int              `koanf:"isolated"`
	StartTimeout *time.Duration    `koanf:"start_timeout"`
	Limits       Limits            `koanf:"limits"`
	SHA256       string            `koanf:"sha256"`
	User         string            `koanf:"user"`
	Group        string            `koanf:"group"`
	Watch        *bool             `koanf:"watch"`
	Canary       Canary            `koanf:"canary"`
}

// Canary is how a new version is compared with the serving one.
type Canary struct {
	Share  *float64       `koanf:"share"`
	Period *time.Duration `koanf:"period"`
	// MaxSlowdown is a factor; 0 means that duration does not matter.
	MaxSlowdown *float64 `koanf:"max_slowdown"`
}

// Limits bound each process with all its children.
type Limits struct {
	Memory    *Size    `koanf:"memory"`
	CPUs      *float64 `koanf:"cpus"`
	OpenFiles *uint64  `koanf:"open_files"`
	Processes *uint64  `koanf:"processes"`
}

// finish fills in defaults and checks. Its errors begin with the key.
func (h *Plugin) finish(environ []string) error {
	if h.Path == "" {
		return errors.New("path: is empty")
	}
	if h.Name == "" {
		h.Name = filepath.Base(h.Path)
	}
	setDefault(&h.Processes, 1)
	setDefault(&h.Isolated, host.DefaultIsolated)
	setDefault(&h.StartTimeout, host.DefaultStartTimeout)
	setDefault(&h.Watch, true)
	setDefault(&h.Canary.Share, defaultCanaryShare)
	setDefault(&h.Canary.Period, defaultCanaryPeriod)
	setDefault(&h.Canary.MaxSlowdown, defaultMaxSlowdown)
	switch {
	case *h.Canary.Share <= 0 || *h.Canary.Share > 1:
		return fmt.Errorf("canary.share: %g is not above 0 and at most 1", *h.Canary.Share)
	case *h.Canary.Period < 0:
		return fmt.Errorf("canary.period: %s is below zero; 0s turns the canary off", *h.Canary.Period)
	case *h.Canary.MaxSlowdown != 0 && !(*h.Canary.MaxSlowdown >= 1):
		return fmt.Errorf("canary.max_slowdown: %v is below 1; 0 accepts any duration", *h.Canary.MaxSlowdown)
	case *h.Processes < 1:
		return fmt.Errorf("processes: %d is below 1", *h.Processes)
	case h.Concurrency != nil && *h.Concurrency < 1:
		return fmt.Errorf("concurrency: %d is below 1; leave it out to use the plugin's own", *h.Concurrency)
	case *h.Isolated < 1:
		return fmt.Errorf("isolated: %d is below 1; suspects would wait forever", *h.Isolated)
	case h.Limits.CPUs != nil && !(*h.Limits.CPUs >= 0 && *h.Limits.CPUs <= 10_000):
		return fmt.Errorf("limits.cpus: %v is not a number of processors, such as 0.5; 0 is no limit", *h.Limits.CPUs)
	case h.Group != "" && h.User == "":
		return errors.New("group: needs a user")
	}
	if err := host.CheckStartTimeout(*h.StartTimeout); err != nil {
		return fmt.Errorf("start_timeout: %w", err)
	}
	h.SHA256 = strings.ToLower(h.SHA256)
	if h.SHA256 != "" && !isSHA256(h.SHA256) {
		return fmt.Errorf("sha256: %q is not 64 hexadecimal digits", h.SHA256)
	}
	_, err := h.Environment(environ, nil)
	return err
}

func setDefault[T any](setting **T, value T) {
	if *setting == nil {
		*setting = &value
	}
}

// Environment is the whole environment of the plugin's processes: the inherited
// variables, the given ones, and env with its references resolved. A variable in
// env overrides the others.
func (h *Plugin) Environment(environ []string, given map[string]string) ([]string, error) {
	ours := Variables(environ)
	theirs := map[string]string{}
	for _, name := range inherited {
		if value, set := ours[name]; set {
			theirs[name] = value
		}
	}
	maps.Copy(theirs, given)
	for name, value := range h.Env {
		if name == "" || strings.ContainsAny(name, "=\x00") {
			return nil, fmt.Errorf("env: %q is not the name of a variable", name)
		}
		resolved, err := expand(value, ours)
		if err != nil {
			return nil, fmt.Errorf("env.%s: %w", name, err)
		}
		theirs[name] = resolved
	}
	list := make([]string, 0, len(theirs))
	for name, value := range theirs {
		list = append(list, name+"="+value)
	}
	slices.Sort(list)
	return list, nil
}

// HostConfigs returns what the host needs to know of each plugin.
func (c *Config) HostConfigs(environ []string) ([]host.Config, error) {
	plugins := make([]host.Config, len(c.Plugins))
	for i, h := range c.Plugins {
		environment, err := h.Environment(environ, c.Tracing.PluginVariables(h.Name, environ))
		if err != nil {
			return nil, fmt.Errorf("plugins.%d.%w", i, err)
		}
		plugins[i] = host.Config{
			Name: h.Name, Path: h.Path, Args: h.Args, Env: environment,
			Processes: *h.Processes, Concurrency: or(h.Concurrency, 0), Isolated: *h.Isolated, StartTimeout: *h.StartTimeout,
			Limits: host.Limits{
				MemoryBytes: uint64(or(h.Limits.Memory, 0)),
				CPUs:        or(h.Limits.CPUs, 0),
				OpenFiles:   or(h.Limits.OpenFiles, 0),
				Processes:   or(h.Limits.Processes, host.DefaultProcesses),
			},
			Types:    h.Types,
			Checksum: h.SHA256, User: h.User, Group: h.Group,
			Watch:  *h.Watch,
			Canary: host.Canary{Share: *h.Canary.Share, Period: *h.Canary.Period, MaxSlowdown: *h.Canary.MaxSlowdown},
		}
	}
	return plugins, nil
}

// Variables returns the environment by name. The last value of a name counts.
func Variables(environ []string) map[string]string {
	variables := map[string]string{}
	for _, variable := range environ {
		name, value, _ := strings.Cut(variable, "=")
		variables[name] = value
	}
	return variables
}

// expand replaces ${NAME}. A variable that is not set is an error: otherwise you
// would notice an empty secret much later.
func expand(value string, variables map[string]string) (string, error) {
	var missing error
	expanded := reference.ReplaceAllStringFunc(value, func(found string) string {
		if strings.HasPrefix(found, "$$") {
			return found[1:]
		}
		name := found[2 : len(found)-1]
		content, set := variables[name]
		if !set {
			missing = fmt.Errorf("the variable %s is not set in the environment of the orchestrator", name)
		}
		return content
	})
	return expanded, missing
}
