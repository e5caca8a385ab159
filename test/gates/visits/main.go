// Command visits is a plugin that writes a line at the beginning and at the end of every
// attempt. It appends the lines to the file that the environment variable RECORD names.
//
// If the payload says how many places its key has, an attempt takes one of them while it
// runs. A place is the lock of a file in the directory of the environment variable PLACES.
// The kernel frees the places of a process at the moment that it dies. An attempt that
// finds no place free writes a line that says so.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/holdfast-jobs/holdfast/plugin"
)

// visit is the payload.
type visit struct {
	// Millis is how long the handler takes.
	Millis int `json:"millis"`
	// Key is what the attempts share, and Places how many of them may be there at once; 0
	// for any number.
	Key    string `json:"key,omitempty"`
	Places int    `json:"places,omitempty"`
}

// concurrency is how many attempts a process runs at once. All of them wait.
const concurrency = 1000

func main() {
	plugin.Serve(plugin.Concurrency(concurrency), plugin.Handle("VISIT", run), plugin.Handle("OTHER", run))
}

func run(ctx context.Context, j plugin.Job[visit]) error {
	place, err := take(j)
	if err != nil {
		return err
	}
	if err := write("begin", j); err != nil {
		return errors.Join(err, place.Close())
	}
	var ended error
	select {
	case <-time.After(time.Duration(j.Args.Millis) * time.Millisecond):
	case <-ctx.Done():
		ended = context.Cause(ctx)
	}
	return errors.Join(ended, write("end", j), place.Close())
}

// take takes a place that the attempt has until it closes the file. Without one, it has a
// file that it shares with all others.
func take(j plugin.Job[visit]) (*os.File, error) {
	for place := range j.Args.Places {
		file, err := os.OpenFile(filepath.Join(os.Getenv("PLACES"), fmt.Sprintf("%s.%d", j.Args.Key, place)), os.O_CREATE|os.O_RDWR, 0o644)
		if err != nil {
			return nil, err
		}
		err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return file, nil
		}
		if err = errors.Join(notTaken(err), file.Close()); err != nil {
			return nil, err
		}
	}
	if j.Args.Places > 0 {
		if err := write("over", j); err != nil {
			return nil, err
		}
	}
	return os.Open(os.DevNull)
}

// notTaken is the error unless it says that another attempt has the place.
func notTaken(err error) error {
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil
	}
	return err
}

var record = sync.OnceValues(func() (*os.File, error) {
	return os.OpenFile(os.Getenv("RECORD"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
})

// write appends one short line in a single write, so that lines of concurrent processes
// stay whole.
func write(what string, j plugin.Job[visit]) error {
	file, err := record()
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(file, "%s %s %d %s %s %d\n", what, j.ID, j.Fence, j.Type, j.Tenant, time.Now().UnixNano())
	return err
}
