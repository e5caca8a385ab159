package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
)

// stoppedError says that a signal ended the program before it was done.
type stoppedError struct{ signal os.Signal }

func (e stoppedError) Error() string { return fmt.Sprintf("stopped by signal: %s", e.signal) }

// exitCode is what a shell reports for the signal.
func (e stoppedError) exitCode() int {
	if number, ok := e.signal.(syscall.Signal); ok {
		return 128 + int(number)
	}
	return exitFailure
}

// watchSignals returns two contexts: drain ends at the first SIGTERM or SIGINT
// or with parent, abort at the second signal. A third one kills the process,
// whatever it is waiting for. release ends the watch.
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

// hangups are the SIGHUPs that have been received: one is kept until it is acted on.
type hangups chan os.Signal

// watchHangups keeps a SIGHUP from killing the process until ignore is called.
func watchHangups() hangups {
	received := make(hangups, 1)
	signal.Notify(received, syscall.SIGHUP)
	return received
}

func (received hangups) ignore() { signal.Stop(received) }

// each calls do for each SIGHUP, one at a time, until release is called.
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

// endOnSignal is for commands that end at the first signal, which is the cause
// of the context's end. A second signal kills the process.
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
