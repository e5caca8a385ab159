// Command demo shows Holdfast at work: the real orchestrator with its embedded
// PostgreSQL and the real plugin of built-in handlers, on free ports and in a temporary
// directory. Its jobs succeed, fail, become dead letters and survive crashes. It prints
// what happens and when, and checks everything that it prints.
//
// It exits with 0 if everything held, and otherwise with 1 and the reason.
//
// Usage: demo [-bin DIR] [-keep]
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

// timeLimit bounds the whole demo.
const timeLimit = 60 * time.Second

func main() {
	bin := flag.String("bin", "bin", "directory with the binaries orchestrator and handlers")
	keep := flag.Bool("keep", false, "keep the temporary directory with the orchestrator's log")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	ctx, cancel := context.WithTimeoutCause(ctx, timeLimit, fmt.Errorf("the demo took longer than %s", timeLimit))
	err := run(ctx, *bin, *keep)
	cancel()
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "\ndemo failed:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, bin string, keep bool) (err error) {
	dir, err := os.MkdirTemp("", "holdfast-demo-")
	if err != nil {
		return err
	}
	if err := os.Chmod(dir, 0o755); err != nil { // PostgreSQL may run as another user
		return err
	}
	defer func() {
		if keep || err != nil {
			fmt.Fprintln(os.Stderr, "\nthe orchestrator's log is", filepath.Join(dir, "orchestrator.log"))
			return
		}
		err = os.RemoveAll(dir)
	}()

	story := &story{began: time.Now()}
	stage, err := newStage(ctx, bin, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stage.close()) }()

	for _, scene := range scenes {
		story.scene(scene.title)
		if err := scene.play(ctx, stage, story); err != nil {
			if cause := context.Cause(ctx); cause != nil {
				err = cause
			}
			return fmt.Errorf("%s: %w", scene.title, err)
		}
	}
	story.end()
	return nil
}
