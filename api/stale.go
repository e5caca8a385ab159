package api

import (
	"context"
	"math"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"golang.org/x/sync/singleflight"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// ageHeader says how old an answer is at most, in seconds. It is absent if the answer is current.
const ageHeader = "X-Holdfast-Age"

// fresh is the directive of Cache-Control by which a client asks for a current answer.
const fresh = "no-cache"

// canBeStale is the metadata of an operation that has mayBeStale.
const canBeStale = "stale"

// tellAge lets an answer be a little old, and say so, unless the client wants a fresh one.
func tellAge(ctx huma.Context, next func(huma.Context)) {
	asked := &job.Staleness{Fresh: strings.Contains(strings.ToLower(ctx.Header("Cache-Control")), fresh)}
	next(agedContext{huma.WithContext(ctx, job.WithStaleness(ctx.Context(), asked)), asked})
}

// agedContext adds the age to the header of the answer.
type agedContext struct {
	humaContext
	asked *job.Staleness
}

func (c agedContext) Unwrap() huma.Context { return c.humaContext }

func (c agedContext) SetStatus(code int) {
	if age, old := c.asked.Age(); old {
		c.SetHeader(ageHeader, strconv.FormatFloat(math.Ceil(age.Seconds()*10)/10, 'f', 1, 64))
	}
	c.humaContext.SetStatus(code)
}

// aged is what several requests share, with its age.
type aged[T any] struct {
	value T
	of    *job.Staleness
}

// once computes something once for all requests that wait for it with the same key. Those
// that want it fresh share one of their own.
func once[T any](ctx context.Context, d deadline, group *singleflight.Group, key string, compute func(context.Context) (T, error)) (T, error) {
	asked := job.StalenessOf(ctx)
	if asked.Fresh {
		key += " fresh"
	}
	// Unlike DoChan, Do passes a panic on to the requests and does not end the program.
	shared, err, _ := group.Do(key, func() (any, error) {
		// The first request may end while others still wait.
		ctx, cancel := d.orStop(context.WithoutCancel(ctx), d.usual)
		defer cancel()
		got := aged[T]{of: &job.Staleness{Fresh: asked.Fresh}}
		value, err := compute(job.WithStaleness(ctx, got.of))
		got.value = value
		return got, err
	})
	if err != nil {
		var none T
		return none, err
	}
	got := shared.(aged[T])
	if age, old := got.of.Age(); old {
		asked.Note(age)
	}
	return got.value, nil
}
