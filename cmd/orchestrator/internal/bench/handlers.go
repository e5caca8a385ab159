package bench

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/holdfast-jobs/holdfast/plugin"
)

// The job types of the bench.
const (
	// noop does nothing.
	noop = "BENCH_NOOP"
	// stamp returns the time of its start, in nanoseconds since 1970.
	stamp = "BENCH_STAMP"
	// sleep does nothing for the duration in its payload.
	sleep = "BENCH_SLEEP"
	// unserved has no handler.
	unserved = "BENCH_UNSERVED"
)

// Environment variables of the handlers' process.
const (
	// concurrencyVariable is how many attempts the process accepts at once.
	concurrencyVariable = "BENCH_CONCURRENCY"
	// typesVariable is the numbers of the only types that the process serves, from the first up
	// to, but not including, the second, such as 10-20. They all do nothing.
	typesVariable = "BENCH_TYPES"
)

// typesFormat is how typesVariable is written.
const typesFormat = "%d-%d"

// handlerConcurrency is more than the orchestrator ever needs.
const handlerConcurrency = 1000

// ServeHandlers is the process of the bench's handlers.
func ServeHandlers() {
	var from, to int
	if _, err := fmt.Sscanf(os.Getenv(typesVariable), typesFormat, &from, &to); err == nil {
		parts := []plugin.Part{plugin.Concurrency(number(concurrencyVariable, handlerConcurrency))}
		for i := from; i < to; i++ {
			parts = append(parts, plugin.Handle(typeNumber(i), doNothing))
		}
		plugin.Serve(parts...)
		return
	}
	plugin.Serve(
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
	)
}

func doNothing(context.Context, plugin.Job[any]) error { return nil }

func typeNumber(i int) string { return fmt.Sprintf("BENCH_TYPE_%03d", i) }

func number(variable string, usual int) int {
	if n, err := strconv.Atoi(os.Getenv(variable)); err == nil {
		return n
	}
	return usual
}
