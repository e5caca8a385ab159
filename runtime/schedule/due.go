package schedule

import (
	"encoding/binary"
	"hash/fnv"
	"time"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

const (
	// Grace is how late a tick may be without being missed: whatever the catch-up is, it
	// makes its job.
	Grace = time.Minute
	// mostCounted bounds the work for ticks that were missed: of more, it only says that
	// there were so many.
	mostCounted = 10_000
)

// Due says which ticks of a schedule to fire now.
type Due struct {
	// Fire are ticks in their order.
	Fire []time.Time
	// Missed counts those that are not fired because they are too old.
	Missed int64
	// Next is the first tick after all these; the zero time for none. It is not in the
	// future if there was more to fire than was asked for.
	Next time.Time
}

// Due decides what to do with the ticks from an instant to now. It returns at most so many
// of them to fire. The instant need be no tick: the timing, or the rules of its zone, may
// have changed.
func (k *Ticks) Due(next, now time.Time, catchUp job.CatchUp, window time.Duration, most int) Due {
	next = k.After(next.Add(-1))
	due := Due{Next: next}
	late := now.Add(-Grace)
	if next.IsZero() {
		return due
	}
	if next.Before(late) {
		switch catchUp {
		case job.CatchUpAll:
			due.Missed, _, due.Next = k.pass(next, now.Add(-max(window, Grace)))
		case job.CatchUpLast:
			var newest time.Time
			due.Missed, newest, due.Next = k.pass(next, late)
			due.Missed--
			due.Fire = append(due.Fire, newest)
		case job.CatchUpNone:
			due.Missed, _, due.Next = k.pass(next, late)
		}
	}
	for !due.Next.IsZero() && !due.Next.After(now) && len(due.Fire) < most {
		due.Fire = append(due.Fire, due.Next)
		due.Next = k.After(due.Next)
	}
	return due
}

// pass goes from a tick to the first that is not before an instant; the zero time for none.
// It counts the ticks that it passes, and returns the newest of them.
func (k *Ticks) pass(tick, to time.Time) (passed int64, newest, next time.Time) {
	for next = tick; !next.IsZero() && next.Before(to); next = k.After(next) {
		if passed++; passed > mostCounted {
			return mostCounted, k.newestBefore(next, to), k.After(to.Add(-1))
		}
		newest = next
	}
	return passed, newest, next
}

// newestBefore is the last tick before an instant. There is one: tick is.
func (k *Ticks) newestBefore(tick, to time.Time) time.Time {
	for back := time.Minute; to.Add(-back).After(tick); back *= 2 {
		if first := k.After(to.Add(-back)); !first.IsZero() && first.Before(to) {
			tick = first
			break
		}
	}
	for next := k.After(tick); !next.IsZero() && next.Before(to); next = k.After(tick) {
		tick = next
	}
	return tick
}

// Jitter is by how much the job of a tick is delayed: always the same part of the most for
// the same schedule and tick, and another for others.
func Jitter(tenant, name string, tick time.Time, most time.Duration) time.Duration {
	if most <= 0 {
		return 0
	}
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(tenant + "\x00" + name + "\x00"))
	_, _ = hash.Write(binary.BigEndian.AppendUint64(nil, uint64(tick.Unix()))) //nolint:gosec // any bits will do
	mixed := hash.Sum64()
	mixed ^= mixed >> 33 // the last bytes have not reached the low bits evenly
	mixed *= 0xff51afd7ed558ccd
	mixed ^= mixed >> 33
	return time.Duration(mixed % uint64(most)).Truncate(time.Millisecond)
}
