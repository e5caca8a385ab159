// Command handlers is the plugins of a chaos run in Go. The payload says what each
// attempt does, and the variable ROLE which types the process has. Each handler appends
// what it does to a file of effects. The same handlers in Python and Node.js are in
// scripts.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/holdfast-jobs/holdfast/plugin"
	"github.com/holdfast-jobs/holdfast/test/chaos/history"
	"github.com/holdfast-jobs/holdfast/test/rig"
)

// work is the payload.
type work struct {
	// Mark says which job the payload is for.
	Mark string `json:"mark"`
	// Millis is how long each attempt takes.
	Millis int `json:"millis"`
	// Plan says what each attempt reports; the last one holds for all that follow. Besides
	// the reports of package history it knows "crash".
	Plan []string `json:"plan"`
	// FollowUps is how many jobs each attempt submits, whatever it reports.
	FollowUps int `json:"followUps,omitempty"`
}

func main() {
	switch role := os.Getenv("ROLE"); role {
	case "good":
		plugin.Serve(plugin.HandleResult("CHAOS_GOOD", do), plugin.HandleResult("CHAOS_SLOW", do), plugin.HandleResult("CHAOS_TICK", do))
	case "crashing":
		plugin.Serve(plugin.HandleResult("CHAOS_CRASH", do))
	case "hostile":
		timeout, err := time.ParseDuration(os.Getenv("TIMEOUT"))
		if err != nil {
			fmt.Fprintln(os.Stderr, "TIMEOUT:", err)
			os.Exit(2)
		}
		go flood()
		plugin.Serve(plugin.HandleResult("CHAOS_HOSTILE", deaf, plugin.Timeout(timeout)))
	default:
		fmt.Fprintln(os.Stderr, "no such role:", role)
		os.Exit(2)
	}
}

// betweenReports is how often a handler reports its fence as its progress.
const betweenReports = 300 * time.Millisecond

// do does what the payload says, and stops when it is asked to.
func do(ctx context.Context, j plugin.Job[work]) (string, error) {
	if err := leave(j, history.Began, ""); err != nil {
		return "", err
	}
	over := time.Now().Add(time.Duration(j.Args.Millis) * time.Millisecond)
	for time.Until(over) > betweenReports && ctx.Err() == nil {
		select {
		case <-time.After(betweenReports):
			_ = j.Progress(j.Fence) // refused when the attempt is given up, which the handler is told, too
		case <-ctx.Done():
		}
	}
	select {
	case <-time.After(time.Until(over)):
	case <-ctx.Done():
		if time.Now().After(over) {
			break // the process stood still: it reports what it has done, as if it had not looked
		}
		cause := context.Cause(ctx)
		report := history.Fails
		switch {
		case errors.Is(cause, plugin.ErrLeaseLost):
			report = history.Lost
		case errors.Is(cause, plugin.ErrCanceled):
			report = history.Cancels
		}
		return "", errors.Join(fmt.Errorf("%s was stopped: %w", history.Says(j.ID, j.Fence), cause), leave(j, history.Ended, report))
	}
	return finish(ctx, j)
}

// deaf does not stop when it is asked to, and leaves a child behind that holds its output.
func deaf(ctx context.Context, j plugin.Job[work]) (string, error) {
	if err := leave(j, history.Began, ""); err != nil {
		return "", err
	}
	child := exec.Command("sleep", "900") //nolint:noctx // nobody ends it: that is the point
	child.Stdout, child.Stderr = os.Stdout, os.Stderr
	child.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := child.Start(); err != nil {
		return "", err
	}
	time.Sleep(time.Duration(j.Args.Millis) * time.Millisecond)
	_ = child.Process.Kill()
	_ = child.Wait()
	return finish(ctx, j)
}

// finish submits what follows, has the effect, if there is one, and reports.
func finish(ctx context.Context, j plugin.Job[work]) (string, error) {
	for range j.Args.FollowUps {
		child := work{Mark: history.ChildMark(j.ID), Millis: 20, Plan: []string{string(history.Succeeds)}}
		err := plugin.Submit(ctx, plugin.FollowUp{Type: j.Type, Payload: child, Tags: []string{history.FenceTag(j.Fence)}})
		if err != nil {
			return "", err
		}
	}
	says := history.Says(j.ID, j.Fence)
	report := "succeeds"
	if n := len(j.Args.Plan); n > 0 {
		report = j.Args.Plan[min(j.Attempt, n)-1]
	}
	if report == "crash" {
		_ = syscall.Kill(os.Getpid(), syscall.SIGSEGV)
		os.Exit(9)
	}
	switch history.Report(report) {
	case history.Fails:
		return "", errors.Join(leave(j, history.Ended, history.Fails), errors.New(says+" was to fail"))
	case history.Permanent:
		return "", errors.Join(leave(j, history.Ended, history.Permanent), plugin.Permanent(errors.New(says+" was to end its job")))
	case history.Snoozes:
		if ok, err := j.Resume(new(bool)); err == nil && !ok {
			return "", errors.Join(j.Checkpoint(true), leave(j, history.Ended, history.Snoozes), plugin.Snooze(snooze))
		}
	case history.Succeeds, history.Cancels, history.Lost:
	}
	return says, errors.Join(leave(j, history.Done, ""), leave(j, history.Ended, history.Succeeds))
}

// snooze is how long a handler that snoozes asks to be left alone.
const snooze = time.Second

// self is this process as the host sees it.
var self, selfErr = rig.ProcessOf(os.Getpid())

// leave appends a line in one write.
func leave(j plugin.Job[work], event history.EffectEvent, report history.Report) error {
	followUps, says := 0, ""
	if event == history.Ended {
		followUps, says = j.Args.FollowUps, history.Says(j.ID, j.Fence)
	}
	var delay time.Duration
	if report == history.Snoozes {
		delay = snooze
	}
	line, err := json.Marshal(history.Effect{
		Event: event, JobID: j.ID, JobType: j.Type, Mark: j.Args.Mark, Attempt: j.Attempt, Fence: j.Fence, PID: self.PID, PIDStarted: self.Started(),
		At: history.Nanos(time.Now().UnixNano()), Report: report, Says: says, Delay: delay, FollowUps: followUps,
	})
	if err != nil {
		return err
	}
	file, err := os.OpenFile(os.Getenv("EFFECTS"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644) //nolint:gosec // read by all
	if err != nil {
		return err
	}
	_, err = file.Write(append(line, '\n'))
	return errors.Join(selfErr, err, file.Close())
}

// flood writes to both outputs without end.
func flood() {
	for {
		fmt.Println("noise without meaning")
		fmt.Fprintln(os.Stderr, `{"@message": 42}`)
		time.Sleep(10 * time.Millisecond)
	}
}
