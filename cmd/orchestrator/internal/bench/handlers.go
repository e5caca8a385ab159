package bench

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/holdfast-jobs/holdfast/plugin"
)

// The job types that the bench brings along.
const (
	// noop does nothing.
	noop = "BENCH_NOOP"
	// stamp returns when it was started, in nanoseconds since 1970.
	stamp = "BENCH_STAMP"
	// sleep does nothing for the duration in its payload.
	sleep = "BENCH_SLEEP"
	// unserved has no handler.
	unserved = "BENCH_UNSERVED"
)

// The environment variables of the handlers.
const (
	// concurrencyVariable is how many attempts the process wants at once.
	concurrencyVariable = "BENCH_CONCURRENCY"
	// typesVariable is how many further types there are, all like noop.
	typesVariable = "BENCH_TYPES"
)

// handlerConcurrency never is what holds the orchestrator up.
const handlerConcurrency = 1000

// ServeHandlers is the process that the handlers of the bench run in. It tells
// what it allocates at a socket in the directory.
func ServeHandlers(directory string) {
	if _, err := tellAllocated(directory); err != nil {
		// The other figures are as good without.
		plugin.Logger(context.Background()).Warn("the bench cannot ask what is allocated", "error", err)
	}
	parts := []plugin.Part{
		plugin.Concurrency(number(concurrencyVariable, handlerConcurrency)),
		plugin.Handle(noop, doNothing),
		plugin.HandleResult(stamp, func(context.Context, plugin.Job[any]) (int64, error) {
			return time.Now().UnixNano(), nil
		}),
		plugin.Handle(sleep, func(ctx context.Context, j plugin.Job[time.Duration]) error {
			timer := time.NewTimer(j.Args)
			defer timer.Stop()
			select {
			case <-timer.C:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}, plugin.Timeout(time.Hour)),
	}
	for i := range number(typesVariable, 0) {
		parts = append(parts, plugin.Handle(typeNumber(i), doNothing))
	}
	plugin.Serve(parts...)
}

func doNothing(context.Context, plugin.Job[any]) error { return nil }

func typeNumber(i int) string { return fmt.Sprintf("BENCH_TYPE_%03d", i) }

func number(variable string, usual int) int {
	if n, err := strconv.Atoi(os.Getenv(variable)); err == nil {
		return n
	}
	return usual
}
