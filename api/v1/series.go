package v1

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// SeriesWindow is how far back a series goes.
type SeriesWindow string

// The windows of a series.
const (
	QuarterHour SeriesWindow = "15m"
	Hour        SeriesWindow = "1h"
	Day         SeriesWindow = "24h"
)

// SeriesWindows are all windows, the shortest first.
func SeriesWindows() []SeriesWindow { return []SeriesWindow{QuarterHour, Hour, Day} }

// Slot is how long each slot of the window is.
func (w SeriesWindow) Slot() time.Duration {
	switch w {
	case Hour:
		return time.Minute
	case Day:
		return 15 * time.Minute
	case QuarterHour:
	}
	return job.LatencySlot
}

// Slots is how many slots the window has.
func (w SeriesWindow) Slots() int {
	switch w {
	case Hour:
		return 60
	case Day:
		return 96
	case QuarterHour:
	}
	return 90
}

// Series is what has happened, slot by slot.
type Series struct {
	At          time.Time      `json:"at" doc:"When it was read, by the clock of the database."`
	Window      SeriesWindow   `json:"window" enum:"15m,1h,24h"`
	SlotSeconds int            `json:"slotSeconds" doc:"How long each slot is: 10, 60 or 900 seconds."`
	JobType     string         `json:"jobType,omitempty" doc:"The one job type that was asked for. Absent for all."`
	Wait        *SeriesLatency `json:"wait,omitempty" doc:"As in slots, in the whole window."`
	Run         *SeriesLatency `json:"run,omitempty" doc:"As in slots, in the whole window."`
	Slots       []SeriesSlot   `json:"slots" nullable:"false" doc:"Oldest first. The last is the current one."`
	JobTypes    []SeriesType   `json:"jobTypes,omitempty" nullable:"false" doc:"The 50 job types with the most ended attempts, by name. Absent if one type was asked for, or if no attempts have ended."`
}

// SeriesSlot is what has happened in one slot.
type SeriesSlot struct {
	Start     time.Time      `json:"start"`
	Partial   bool           `json:"partial,omitempty" doc:"Whether the slot has not ended yet. Its counts are exact up to at, and its latencies are still missing."`
	Submitted int64          `json:"submitted"`
	Succeeded int64          `json:"succeeded"`
	Retried   int64          `json:"retried" doc:"Attempts that failed, of jobs that were tried again."`
	Dead      int64          `json:"dead"`
	Canceled  int64          `json:"canceled" doc:"Including jobs that had not started."`
	Requeued  int64          `json:"requeued"`
	Open      int64          `json:"open" doc:"How many jobs waited or ran at the end of the slot, or at at."`
	Wait      *SeriesLatency `json:"wait,omitempty" doc:"How long claimed jobs had been due. Absent if none were claimed, or if that is not known."`
	Run       *SeriesLatency `json:"run,omitempty" doc:"How long handlers that ended had run. Absent if none have ended, or if that is not known."`
}

// SeriesLatency is how long something took in one slot. The percentiles are estimated from
// a histogram, and less than half off.
type SeriesLatency struct {
	Attempts int64   `json:"attempts"`
	P50      float64 `json:"p50Seconds"`
	P95      float64 `json:"p95Seconds"`
	P99      float64 `json:"p99Seconds"`
}

// SeriesType is how many attempts of one job type have ended.
type SeriesType struct {
	JobType string         `json:"jobType"`
	Ended   []int64        `json:"ended" nullable:"false" doc:"How many jobs have ended and attempts have failed, in each slot."`
	Failed  []int64        `json:"failed" nullable:"false" doc:"How many of these failed, whether the job was tried again or is dead."`
	Run     *SeriesLatency `json:"run,omitempty" doc:"How long its handlers that ended had run, in the whole window. Absent if none have ended, and in the window of 24h: ask for the one type."`
}

// maxSeriesTypes bounds the job types in a series.
const maxSeriesTypes = 50

// SeriesEvents is how often an event happened to jobs of a type in a slot, counted from 0.
type SeriesEvents struct {
	Slot    int
	JobType string
	Event   string
	Jobs    int64
}

// SeriesLatencies are latencies in a slot.
type SeriesLatencies struct {
	Slot  int
	Waits job.Latencies
	Runs  job.Latencies
}

// SeriesRuns is how long attempts of a type ran in some part of the window.
type SeriesRuns struct {
	JobType string
	Runs    job.Latencies
}

// AddRuns sets how long attempts of each type have run.
func (s *Series) AddRuns(parts []SeriesRuns) {
	runs := make(map[string]*job.Latencies)
	for _, part := range parts {
		if runs[part.JobType] == nil {
			runs[part.JobType] = &job.Latencies{}
		}
		runs[part.JobType].Add(part.Runs)
	}
	for i, t := range s.JobTypes {
		if of := runs[t.JobType]; of != nil {
			s.JobTypes[i].Run = latencyOf(*of)
		}
	}
}

// SeriesOf puts a series together. How many jobs were open at the end of a slot follows from
// how many are open now, and what has happened since.
func SeriesOf(
	window SeriesWindow, jobType string, at, start time.Time, events []SeriesEvents, latencies []SeriesLatencies, open int64,
) Series {
	series := Series{At: at.UTC(), Window: window, SlotSeconds: int(window.Slot().Seconds()), JobType: jobType}
	series.Slots = make([]SeriesSlot, window.Slots())
	waits, runs := make([]job.Latencies, len(series.Slots)), make([]job.Latencies, len(series.Slots))
	var allWaits, allRuns job.Latencies
	for _, l := range latencies {
		allWaits.Add(l.Waits)
		allRuns.Add(l.Runs)
		if l.Slot < len(series.Slots) {
			waits[l.Slot].Add(l.Waits)
			runs[l.Slot].Add(l.Runs)
		}
	}
	series.Wait, series.Run = latencyOf(allWaits), latencyOf(allRuns)
	byType := make(map[string]*SeriesType)
	for _, e := range events {
		// Whoever changed the clock of the server has made slots that are yet to come.
		nth := min(e.Slot, len(series.Slots)-1)
		series.Slots[nth].count(e)
		if byType[e.JobType] == nil {
			byType[e.JobType] = &SeriesType{JobType: e.JobType, Ended: make([]int64, len(series.Slots)), Failed: make([]int64, len(series.Slots))}
		}
		byType[e.JobType].count(nth, e)
	}
	for nth := len(series.Slots) - 1; nth >= 0; nth-- {
		slot := &series.Slots[nth]
		slot.Start = start.Add(time.Duration(nth) * window.Slot()).UTC()
		slot.Partial = nth == len(series.Slots)-1
		slot.Wait, slot.Run = latencyOf(waits[nth]), latencyOf(runs[nth])
		slot.Open = open
		open -= slot.Submitted + slot.Requeued - slot.Succeeded - slot.Dead - slot.Canceled
	}
	if jobType == "" {
		series.JobTypes = busiest(byType)
	}
	return series
}

// count adds an event to the slot.
func (s *SeriesSlot) count(e SeriesEvents) {
	switch e.Event {
	case "submitted":
		s.Submitted += e.Jobs
	case "succeeded":
		s.Succeeded += e.Jobs
	case "failed":
		s.Retried += e.Jobs
	case "dead":
		s.Dead += e.Jobs
	case "canceled", "withdrawn":
		s.Canceled += e.Jobs
	case "requeued":
		s.Requeued += e.Jobs
	}
}

// count adds an event to the figures of its type.
func (t *SeriesType) count(slot int, e SeriesEvents) {
	switch e.Event {
	case "failed", "dead":
		t.Failed[slot] += e.Jobs
		t.Ended[slot] += e.Jobs
	case "succeeded", "canceled", "withdrawn":
		t.Ended[slot] += e.Jobs
	}
}

func (t *SeriesType) total() (n int64) {
	for _, ended := range t.Ended {
		n += ended
	}
	return n
}

// busiest are the types with the most ended attempts, by name.
func busiest(byType map[string]*SeriesType) []SeriesType {
	var types []SeriesType
	for t := range maps.Values(byType) {
		if t.total() > 0 {
			types = append(types, *t)
		}
	}
	slices.SortFunc(types, func(a, b SeriesType) int {
		return cmp.Or(cmp.Compare(b.total(), a.total()), cmp.Compare(a.JobType, b.JobType))
	})
	types = types[:min(len(types), maxSeriesTypes)]
	slices.SortFunc(types, func(a, b SeriesType) int { return cmp.Compare(a.JobType, b.JobType) })
	return types
}

// latencyOf returns nil without any.
func latencyOf(l job.Latencies) *SeriesLatency {
	n := l.Count()
	if n == 0 {
		return nil
	}
	return &SeriesLatency{
		Attempts: n, P50: l.Percentile(0.5).Seconds(), P95: l.Percentile(0.95).Seconds(), P99: l.Percentile(0.99).Seconds(),
	}
}
