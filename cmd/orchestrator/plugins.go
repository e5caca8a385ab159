package main

import (
	"encoding/hex"
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

// inherited are the variables that a handler gets from the orchestrator's
// environment. Everything else it needs is listed under its env.
var inherited = []string{"PATH", "HOME", "TMPDIR", "TZ", "LANG"}

// How a new version of a handler is tried, unless it is configured otherwise.
const (
	canaryShare  = 0.1
	canaryPeriod = 3 * time.Second
	maxSlowdown  = 3
)

// reference is ${NAME}; $${NAME} stands for that text itself.
var reference = regexp.MustCompile(`\$?\$\{([^}]*)\}`)

// finish fills in defaults and checks. Its errors begin with the key.
func (h *pluginConfig) finish(environ []string) error {
	if h.Path == "" {
		return errors.New("path: is empty")
	}
	if h.Name == "" {
		h.Name = filepath.Base(h.Path)
	}
	if h.Processes == nil {
		h.Processes = new(1)
	}
	if h.Isolated == nil {
		h.Isolated = new(host.DefaultIsolated)
	}
	if h.Watch == nil {
		h.Watch = new(true)
	}
	if h.Canary.Share == nil {
		h.Canary.Share = new(canaryShare)
	}
	if h.Canary.Period == nil {
		h.Canary.Period = new(canaryPeriod)
	}
	if h.Canary.MaxSlowdown == nil {
		h.Canary.MaxSlowdown = new(float64(maxSlowdown))
	}
	switch {
	case *h.Canary.Share <= 0 || *h.Canary.Share > 1:
		return fmt.Errorf("canary.share: %g is not above 0 and at most 1", *h.Canary.Share)
	case *h.Canary.Period < 0:
		return fmt.Errorf("canary.period: %s is below zero; 0s is for no trial", *h.Canary.Period)
	case *h.Canary.MaxSlowdown != 0 && !(*h.Canary.MaxSlowdown >= 1):
		return fmt.Errorf("canary.max_slowdown: %v is below 1; 0 is for any", *h.Canary.MaxSlowdown)
	case *h.Processes < 1:
		return fmt.Errorf("processes: %d is below 1", *h.Processes)
	case h.Concurrency != nil && *h.Concurrency < 1:
		return fmt.Errorf("concurrency: %d is below 1; leave it out for the handler's own wish", *h.Concurrency)
	case *h.Isolated < 1:
		return fmt.Errorf("isolated: %d is below 1; suspects would wait for ever", *h.Isolated)
	case h.Limits.CPUs != nil && !(*h.Limits.CPUs >= 0 && *h.Limits.CPUs <= 10_000):
		return fmt.Errorf("limits.cpus: %v is not a number of processors, such as 0.5; 0 is no limit", *h.Limits.CPUs)
	case h.Group != "" && h.User == "":
		return errors.New("group: needs a user")
	}
	h.SHA256 = strings.ToLower(h.SHA256)
	if sum, err := hex.DecodeString(h.SHA256); h.SHA256 != "" && (err != nil || len(sum) != 32) {
		return fmt.Errorf("sha256: %q is not 64 hexadecimal digits", h.SHA256)
	}
	_, err := h.environment(environ, nil)
	return err
}

// environment is the whole environment of the handler's process: the few
// inherited variables, what all handlers are given, and its own env with
// references resolved. A variable in env wins over the others.
func (h *pluginConfig) environment(environ []string, given map[string]string) ([]string, error) {
	ours := variablesOf(environ)
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

// variablesOf returns the environment by name.
func variablesOf(environ []string) map[string]string {
	variables := map[string]string{}
	for _, variable := range environ {
		name, value, _ := strings.Cut(variable, "=")
		variables[name] = value
	}
	return variables
}

// expand replaces ${NAME}. A variable that is not set is an error: an empty
// secret is found out much later.
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
