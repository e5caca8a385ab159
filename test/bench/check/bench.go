package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// bench runs orchestrator bench, as a user would.
type bench struct {
	// program is the orchestrator.
	program string
	// database is the URL of a server whose user may create databases; empty for an
	// embedded one.
	database string
}

// report is the output of orchestrator bench --json, as far as it is needed here.
type report struct {
	Machine   machine    `json:"machine"`
	Began     time.Time  `json:"began"`
	Scenarios []scenario `json:"scenarios"`
}

type machine struct {
	CPUs       int               `json:"cpus"`
	CPU        string            `json:"cpu,omitempty"`
	System     string            `json:"system"`
	Go         string            `json:"go"`
	PostgreSQL string            `json:"postgresql"`
	Settings   map[string]string `json:"settings"`
}

type scenario struct {
	Name  string      `json:"name"`
	Cases []benchCase `json:"cases"`
}

type benchCase struct {
	Name    string   `json:"name"`
	Figures []figure `json:"figures"`
}

type figure struct {
	Name   string  `json:"name"`
	Unit   string  `json:"unit"`
	Median float64 `json:"median"`
}

// measure measures one of the guarded scenarios.
func (b bench) measure(ctx context.Context, scenario string) (told report, err error) {
	arguments := []string{
		"bench", scenario, "--json", "--runs", strconv.Itoa(guardedRuns),
		"--warm-ups", strconv.Itoa(guardedWarmUps), "--jobs", strconv.Itoa(guardedJobs[scenario]),
	}
	if b.database != "" {
		arguments = append(arguments, "--database", b.database)
	}
	command := exec.CommandContext(ctx, b.program, arguments...)
	// SIGTERM lets it stop its orchestrator and drop its database. The ^C of a terminal
	// would be its second signal, which ends it at once, so it gets a group of its own.
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGTERM) }
	command.WaitDelay = time.Minute
	var out bytes.Buffer
	command.Stdout, command.Stderr = &out, os.Stderr
	if err := command.Run(); err != nil {
		return told, fmt.Errorf("%s: %w", strings.Join(command.Args, " "), err)
	}
	return told, json.Unmarshal(out.Bytes(), &told)
}
