package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
)

// stoppedError says that a signal stopped the program before it was done.
type stoppedError struct{ signal os.Signal }

func (e stoppedError) Error() string { return fmt.Sprintf("stopped by signal: %s", e.signal) }

// exitCode is what a shell reports for the signal.
func (e stoppedError) exitCode() int {
	if number, ok := e.signal.(syscall.Signal); ok {
		return 128 + int(number)
	}
	return exitFailure
}

// watchSignals returns two contexts. drain ends with parent or at the first SIGTERM
// or SIGINT, abort at the second. A third signal kills the process. release stops
// watching.
func watchSignals(parent context.Context, log *slog.Logger) (drain, abort context.Context, release func()) {
	drain, endDrain := context.WithCancelCause(parent)
	abort, endAbort := context.WithCancelCause(context.WithoutCancel(parent))
	received := make(chan os.Signal, 2)
	signal.Notify(received, syscall.SIGTERM, os.Interrupt)
	released := make(chan struct{})
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		for _, end := range []context.CancelCauseFunc{endDrain, endAbort} {
			select {
			case s := <-received:
				log.Info("signal received", "signal", s.String())
				end(stoppedError{s})
			case <-released:
				return
			}
		}
		signal.Stop(received)
	}()
	return drain, abort, func() {
		signal.Stop(received)
		close(released)
		<-watched
		endDrain(nil)
		endAbort(nil)
	}
}

// hangups holds at most one SIGHUP until each handles it.
type hangups chan os.Signal

// watchHangups keeps a SIGHUP from killing the process until ignore is called.
func watchHangups() hangups {
	received := make(hangups, 1)
	signal.Notify(received, syscall.SIGHUP)
	return received
}

func (received hangups) ignore() { signal.Stop(received) }

// each calls do for each SIGHUP, one at a time, until you call release.
func (received hangups) each(do func()) (release func()) {
	released, watched := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(watched)
		for {
			select {
			case <-received:
				do()
			case <-released:
				return
			}
		}
	}()
	return func() {
		close(released)
		<-watched
	}
}

// endOnSignal returns a context that ends at the first signal, with a stoppedError
// as its cause. A second signal kills the process.
func endOnSignal(parent context.Context) (context.Context, func()) {
	ctx, end := context.WithCancelCause(parent)
	received := make(chan os.Signal, 1)
	signal.Notify(received, syscall.SIGTERM, os.Interrupt)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		select {
		case s := <-received:
			end(stoppedError{s})
		case <-ctx.Done():
		}
		signal.Stop(received)
	}()
	return ctx, func() {
		end(nil)
		<-watched
	}
}
