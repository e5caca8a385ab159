// Command testhandlers is a plugin for the end-to-end tests. Some of its handlers are
// good, and some do what no handler should. The variable HOSTILE says how the whole
// process misbehaves, and TYPES names further types that do what WORK does.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/holdfast-jobs/holdfast/plugin"
	"github.com/holdfast-jobs/holdfast/plugin/tracing"
)

// A careless import may print to stdout before the handshake.
func init() { fmt.Println("a handler that prints in init") }

// fault makes a version worse than the others. It follows "fault=" in the last line of
// the program's file, since linking each version would take seconds.
var fault = sync.OnceValue(func() string {
	// This opens the file that was started, even if another file has its name now.
	program, err := os.Open("/proc/self/exe")
	if err != nil {
		panic(err)
	}
	defer func() { _ = program.Close() }()
	end := make([]byte, 64)
	if _, err := program.Seek(-int64(len(end)), io.SeekEnd); err != nil {
		panic(err)
	}
	if _, err := io.ReadFull(program, end); err != nil {
		panic(err)
	}
	_, named, _ := strings.Cut(string(end), "fault=")
	named, _, _ = strings.Cut(named, "\n")
	return named
})

// work is the payload of every type.
type work struct {
	// Millis is how long the handler takes.
	Millis int `json:"millis,omitempty"`
	// FirstMillis is how long the handler takes in the first claim instead.
	FirstMillis int `json:"firstMillis,omitempty"`
	// When is a file that the handler waits for.
	When string `json:"when,omitempty"`
	// SnoozeMillis is how long the first claim asks to wait.
	SnoozeMillis int `json:"snoozeMillis,omitempty"`
	// FailFirst is how many attempts fail before one succeeds.
	FailFirst int `json:"failFirst,omitempty"`
	// Result is returned as it is.
	Result json.RawMessage `json:"result,omitempty"`
	// Error is the text to fail with.
	Error string `json:"error,omitempty"`
	// Checkpoints is how many checkpoints TRACE saves before it continues; 0 means one.
	Checkpoints int `json:"checkpoints,omitempty"`
	// Panic is the text to panic with.
	Panic string `json:"panic,omitempty"`
}

func main() {
	prefix := os.Getenv("TYPE_PREFIX")
	switch os.Getenv("HOSTILE") {
	case "exits at once":
		os.Exit(3)
	case "floods stderr":
		go flood()
	case "forks":
		fork()
	}
	parts := []plugin.Part{
		plugin.HandleResult(prefix+"WORK", run),
		plugin.Handle(prefix+"IGNORE_CANCEL", ignoreCancel, plugin.Timeout(300*time.Millisecond)),
		plugin.Handle(prefix+"CRASH", crash),
		plugin.Handle(prefix+"STOP", stop),
		plugin.Handle(prefix+"DIE", die),
		plugin.Handle(prefix+"BALLOON", balloon),
		plugin.Handle(prefix+"FORK_BOMB", forkBomb),
		plugin.Handle(prefix+"SPIN", spin, plugin.Timeout(2*time.Second)),
		plugin.Handle(prefix+"LOG", talk),
		plugin.Handle(prefix+"REPORT", report),
		plugin.HandleResult(prefix+"TRACE", traced),
		plugin.Handle(prefix+"SPAN", spanned),
		tracing.Setup(),
	}
	for _, further := range strings.Fields(os.Getenv("TYPES")) {
		parts = append(parts, plugin.HandleResult(further, run))
	}
	plugin.Serve(parts...)
}

// run does what the payload says. For each attempt that finishes, it appends a line to
// the file of effects, with the times of its beginning and end.
func run(ctx context.Context, j plugin.Job[work]) (json.RawMessage, error) {
	began := time.Now()
	switch {
	case fault() == "crashes":
		os.Exit(9)
	case fault() == "fails" && rand.Float64() < 0.3:
		return nil, errors.New("this version fails three times in ten")
	}
	takes := j.Args.Millis
	if j.Fence == 1 && j.Args.FirstMillis > 0 {
		takes = j.Args.FirstMillis
	}
	select {
	case <-time.After(time.Duration(takes) * time.Millisecond):
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if j.Fence == 1 && j.Args.SnoozeMillis > 0 {
		return nil, plugin.Snooze(time.Duration(j.Args.SnoozeMillis) * time.Millisecond)
	}
	if j.Args.When != "" {
		if err := await(ctx, j.Args.When); err != nil {
			return nil, err
		}
	}
	switch {
	case j.Attempt <= j.Args.FailFirst:
		return nil, fmt.Errorf("attempt %d is to fail", j.Attempt)
	case j.Args.Error != "":
		return nil, errors.New(strings.ReplaceAll(j.Args.Error, "NUL", "\x00"))
	}
	if err := leaveEffect(j.ID, j.Fence, began); err != nil {
		return nil, err
	}
	return j.Args.Result, nil
}

// leaveEffect appends one short line in one write, so that lines of concurrent
// processes do not mix.
func leaveEffect(id string, fence int64, began time.Time) error {
	path := os.Getenv("EFFECTS")
	if path == "" {
		return nil
	}
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(file, "%s %d %d %d\n", id, fence, began.UnixNano(), time.Now().UnixNano())
	return errors.Join(err, file.Close())
}

func ignoreCancel(context.Context, plugin.Job[work]) error { select {} }

// crash takes the process down: nobody recovers from a panic in a goroutine
// that the handler has started.
func crash(context.Context, plugin.Job[work]) error {
	go panic("a handler that crashes")
	select {}
}

// stop freezes the whole process, as a debugger or a laptop's lid may. Threads
// may go on for a moment, so it must not return.
func stop(context.Context, plugin.Job[work]) error {
	if err := syscall.Kill(os.Getpid(), syscall.SIGSTOP); err != nil {
		return err
	}
	select {}
}

// die kills its own process as soon as the file exists.
func die(ctx context.Context, j plugin.Job[work]) error {
	if err := await(ctx, j.Args.When); err != nil {
		return err
	}
	if err := syscall.Kill(os.Getpid(), syscall.SIGKILL); err != nil {
		return err
	}
	select {}
}

// await waits until the file exists.
func await(ctx context.Context, path string) error {
	for {
		if _, err := os.Stat(path); err == nil {
			return nil
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// balloon allocates ten gigabytes and writes to them.
func balloon(context.Context, plugin.Job[work]) error {
	var all [][]byte
	for range 1000 {
		block := make([]byte, 10<<20)
		for i := 0; i < len(block); i += 4096 {
			block[i] = 1
		}
		all = append(all, block)
	}
	return fmt.Errorf("%d blocks were there", len(all))
}

// forkBomb would end by itself at two thousand processes.
func forkBomb(context.Context, plugin.Job[work]) error {
	bomb := `f() { [ $1 -gt 0 ] || exec sleep 600; f $(($1-1)) & f $(($1-1)) & wait; }; f 10`
	if err := exec.Command("sh", "-c", bomb).Start(); err != nil { //nolint:noctx // it is killed with the process
		return err
	}
	select {}
}

// report reports in a loop until its time is over, the file exists, or it is stopped.
func report(ctx context.Context, j plugin.Job[work]) error {
	over := time.After(time.Duration(j.Args.Millis) * time.Millisecond)
	look := time.NewTicker(50 * time.Millisecond)
	defer look.Stop()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-over:
			return nil
		case <-look.C:
			if _, err := os.Stat(j.Args.When); err == nil {
				return j.Progress("the last")
			}
		default:
		}
		if err := errors.Join(j.Progress(n), j.Checkpoint(n)); err != nil {
			return err
		}
		plugin.Logger(ctx).Info("again", "n", n)
	}
}

// spin keeps more threads busy than there are processors, and ignores cancels.
func spin(context.Context, plugin.Job[work]) error {
	for range 2 * runtime.NumCPU() {
		go func() {
			for {
				runtime.Gosched()
			}
		}()
	}
	select {}
}

// talk logs one line, then 300 more, and then does what the payload says. The first
// attempt crashes as soon as its first line has probably been read.
func talk(ctx context.Context, j plugin.Job[work]) error {
	plugin.Logger(ctx).Warn("begun \x1b[2J", "attempt", j.Attempt)
	if j.Args.FailFirst >= j.Attempt {
		time.Sleep(time.Second)
		return crash(ctx, j)
	}
	for n := range 300 {
		plugin.Logger(ctx).Info(fmt.Sprint("line ", n))
	}
	_, err := run(ctx, j)
	return err
}

func flood() {
	line := []byte(strings.Repeat("noise ", 1000) + "\n" + `{"@message": 42}` + "\n")
	for {
		_, _ = os.Stderr.Write(line)
	}
}

// fork leaves a child behind that keeps the pipes open and outlives its parent.
func fork() {
	child := exec.Command("sleep", "600") //nolint:noctx // it is meant to be left behind
	child.Stdout, child.Stderr = os.Stdout, os.Stderr
	if err := child.Start(); err != nil {
		panic(err)
	}
}
